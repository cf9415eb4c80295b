#!/bin/sh
# Installs Headwater from a folder of wheels, without a network and without a compiler, and makes a
# broker a service of this machine. Run twice it changes nothing; run with newer wheels it updates,
# and `--back` returns to what ran before.
set -eu

HOME_DIR=${HEADWATER_HOME:-/opt/headwater}
BIN_DIR=${HEADWATER_BIN:-/usr/local/bin}
WHEELS=
NAME=
ACTION=install

usage() {
    cat <<EOF
usage: install.sh --wheels DIR [--name BROKER]    install, or update to these wheels
       install.sh --back                          return to the version that ran before
       install.sh --uninstall                     take the service and programs away; data stay

example: sudo sh install.sh --wheels ./wheels --name pi3

The folder of wheels is made on any machine with a network, for the one that it is to be taken to:
  pip download --only-binary=:all: --python-version 3.11 --platform manylinux_2_28_aarch64 \\
      --platform manylinux2014_aarch64 --dest wheels headwater
EOF
}

fail() {
    echo "install.sh: $1" >&2
    exit "${2:-1}"
}

while [ $# -gt 0 ]; do
    case $1 in
        --wheels) [ $# -gt 1 ] || fail "--wheels wants a folder" 2; WHEELS=$2; shift ;;
        --name) [ $# -gt 1 ] || fail "--name wants a name" 2; NAME=$2; shift ;;
        --back) ACTION=back ;;
        --uninstall) ACTION=uninstall ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; fail "\`$1\` is no option" 2 ;;
    esac
    shift
done

[ "$(id -u)" = 0 ] || fail "only root may do this: sudo sh install.sh …" 2

restart() {
    if [ -d /run/systemd/system ]; then
        systemctl try-restart headwater
    fi
}

# The version that `current` leads to becomes that of the first word; the one before is kept.
switch_to() {
    if [ -L "$HOME_DIR/current" ] && [ "$(readlink "$HOME_DIR/current")" != "$1" ]; then
        ln -sfn "$(readlink "$HOME_DIR/current")" "$HOME_DIR/before"
    fi
    ln -sfn "$1" "$HOME_DIR/current.new"
    mv -T "$HOME_DIR/current.new" "$HOME_DIR/current"
}

install_version() {
    [ -n "$WHEELS" ] || { usage >&2; fail "--wheels names the folder of wheels" 2; }
    set -- "$WHEELS"/headwater-*.whl
    [ -f "$1" ] || fail "$WHEELS has no wheel of headwater" 2
    [ $# -eq 1 ] || fail "$WHEELS has several wheels of headwater; leave one" 2
    command -v python3 > /dev/null || fail "python3 is missing: apt-get install python3 python3-venv"
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "Python 3.11 or later is wanted; this is $(python3 --version)"
    python3 -c 'import venv, ensurepip' 2> /dev/null ||
        fail "Python's venv is missing: apt-get install python3-venv"

    # A version is known by all its wheels, so that newer ones of what it needs are another version.
    version=$(basename "$1" | cut -d- -f2)-$(cd "$WHEELS" && sha256sum ./*.whl | sha256sum | cut -c1-12)
    place=$HOME_DIR/$version
    if [ ! -f "$place/complete" ]; then
        rm -rf "$place"
        mkdir -p "$HOME_DIR"
        python3 -m venv "$place"
        "$place/bin/python" -m pip install --quiet --no-index --disable-pip-version-check \
            --find-links "$WHEELS" headwater ||
            fail "the wheels do not fit: is the folder made for this machine ($(uname -m))?"
        "$place/bin/python" -m pip uninstall --quiet --yes setuptools > /dev/null 2>&1 || true
        touch "$place/complete"
        echo "done      install Headwater $version to $place"
    else
        echo "as it is  Headwater $version in $place"
    fi
    # What cannot run is never switched to.
    "$place/bin/headwater" --version > /dev/null || fail "$place/bin/headwater does not run"

    was=$(readlink "$HOME_DIR/current" 2> /dev/null || true)
    switch_to "$version"
    mkdir -p "$BIN_DIR"
    ln -sfn "$HOME_DIR/current/bin/headwater" "$BIN_DIR/headwater"
    "$BIN_DIR/headwater" broker install ${NAME:+--name "$NAME"}
    if [ -n "$was" ] && [ "$was" != "$version" ]; then
        restart
        echo "updated from $was; \`install.sh --back\` returns to it"
    fi
    # Two are kept: the one that runs, and the one before.
    for old in "$HOME_DIR"/*/; do
        old=$(basename "$old")
        case $old in
            current | before | "$version" | "$(readlink "$HOME_DIR/before" 2> /dev/null)") ;;
            *) rm -rf "${HOME_DIR:?}/$old" ;;
        esac
    done
}

case $ACTION in
    install) install_version ;;
    back)
        before=$(readlink "$HOME_DIR/before" 2> /dev/null) ||
            fail "nothing ran before what runs now, that is still here"
        switch_to "$before"
        restart
        echo "back at $before"
        ;;
    uninstall)
        if [ -x "$BIN_DIR/headwater" ]; then
            "$BIN_DIR/headwater" broker uninstall
        fi
        rm -f "$BIN_DIR/headwater"
        rm -rf "$HOME_DIR"
        echo "data and configuration stay in /var/lib/headwater and /etc/headwater"
        ;;
esac
