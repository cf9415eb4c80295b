"""The unit by which systemd runs a broker.

Owns its text. Must not know the machine. Invariant: the broker may write to its own folder of data
alone, and gains no right that its user does not have.
"""

from pathlib import PurePath
from typing import Final

UNIT: Final = """\
[Unit]
Description=Headwater broker
After=network-online.target time-sync.target
Wants=network-online.target
StartLimitIntervalSec=0

[Service]
Type=notify
User={user}
Group={user}
ExecStart={program} broker --config {config}
ExecReload=/bin/kill -HUP $MAINPID
# A broker that says nothing for so long hangs, and is begun again: its journal has all of it.
WatchdogSec=60
Restart=always
RestartSec=2
TimeoutStopSec=30
WorkingDirectory={data}
ReadWritePaths={data}
UMask=0077
LimitNOFILE=65536

# It listens, dials and writes to its own folder; all else is closed to it.
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
LockPersonality=yes
RemoveIPC=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
"""


def unit_text(program: str, config: PurePath, data: PurePath, user: str) -> str:
    """Return the unit of a broker that is run by `program`, a command with its first words."""
    return UNIT.format(program=program, config=config, data=data, user=user)
