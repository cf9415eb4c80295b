"""Makes the secrets of docker-compose.yml: random, a file each, for the containers' group alone.

    python deploy/make_secrets.py deploy/secrets

What is there already is left as it is, so it can be run again after one file was removed; whoever
removes a password of a user removes `rights.toml` (or `mosquitto.passwords`) too.
"""

import argparse
import base64
import contextlib
import hashlib
import io
import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

from headwater.cli import main as headwater

GROUP = 10001  # of all containers that read secrets
ROUNDS = 101  # mosquitto's own number, for passwords that nobody can guess anyway
USERS = {
    "admin": "administrate",
    "sensors": "publish",
    "demo": "demo",
    "spark": "spark",
}
ROLES = """# Who may do what, see docs/rights.md. Each user's password is in the file of that name.
[roles.spark]
subscribe = ["results/#"]
may = ["look", "consumers"]

[roles.demo]
subscribe = ["#"]
submit_as = ["*"]
read_types = ["*"]
drive = ["*"]
may = ["look"]
"""


def make(folder: Path, owner: int | None) -> list[str]:
    """Make what is missing; the names of the files that were made."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    made: list[str] = []

    def put(name: str, text: str) -> None:
        path = folder / name
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(text, encoding="utf-8")
            made.append(name)

    put("links.secret", secrets.token_hex(32) + "\n")
    for user in (*USERS, "join", "grafana"):
        put(f"{user}.password", secrets.token_urlsafe(24) + "\n")
    passwords = {user: password(folder, user) for user in ("sensors", "join")}
    put("mosquitto.passwords", "".join(
        f"{'pass' if user == 'join' else user}:{hashed(text)}\n" for user, text in passwords.items()
    ))  # fmt: skip
    if not (folder / "rights.toml").exists():
        put("rights.toml", ROLES)
        (folder / "look.token").unlink(missing_ok=True)
        rights = str(folder / "rights.toml")
        for user, role in USERS.items():
            words = ["user", "add", user, "--role", role, "--file", rights, "--password-stdin"]
            called(words, password(folder, user))
        words = ["token", "add", "prometheus", "--role", "look", "--file", rights]
        put("look.token", called(words).split()[-1] + "\n")
    for path in folder.iterdir():
        path.chmod(0o640)
        if owner is not None:
            os.chown(path, owner, GROUP)
    if owner is not None:
        os.chown(folder, owner, GROUP)
    return made


def password(folder: Path, user: str) -> str:
    """Return the password in a file."""
    return (folder / f"{user}.password").read_text(encoding="utf-8").strip()


def hashed(text: str) -> str:
    """Return a password as mosquitto keeps it: PBKDF2 with SHA-512."""
    salt = secrets.token_bytes(12)
    digest = hashlib.pbkdf2_hmac("sha512", text.encode(), salt, ROUNDS)
    return "$".join(
        ["", "7", str(ROUNDS), base64.b64encode(salt).decode(), base64.b64encode(digest).decode()]
    )


def called(words: Sequence[str], typed: str = "") -> str:
    """Return what a command prints; ends with its complaint where it fails."""
    printed = io.StringIO()
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(typed.encode() + b"\n"))
    try:
        with contextlib.redirect_stdout(printed):
            status = headwater(list(words))
    finally:
        sys.stdin = before
    if status != 0:
        raise SystemExit(status)
    return printed.getvalue()


def main() -> None:
    """Make them, and tell which."""
    parser = argparse.ArgumentParser(description="Make the secrets of docker-compose.yml.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--owner", type=int, help="the user that the files are to belong to")
    arguments = parser.parse_args()
    made = make(arguments.folder, arguments.owner)
    sys.stdout.write(f"made {', '.join(made)}\n" if made else "all secrets are there\n")


if __name__ == "__main__":
    main()
