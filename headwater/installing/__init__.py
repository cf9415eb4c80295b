"""A broker as a service of a machine: what is put where, and taken away again.

Problem: on a small machine nobody is there to start a broker, to give it a user of its own that may
do nothing else, or to look whether it still turns. systemd does so where a unit tells it to.

    install ──▶ steps: a user, folders, a configuration, the unit ──▶ machine: what is so already
    uninstall ─▶ the same steps backwards                              stays, the rest is done

Owns the unit's text, the steps and their order. Must not know what a broker needs of its
configuration, or what it keeps. Invariant: a step that is done is not done again, so that whoever
installs twice changes nothing; a configuration and data that are there are never written over.

The way: `unit.unit_text` is the unit; `steps.installation` and `steps.removal` are the steps of a
`install_root.InstallRoot`, each of which tells what it does before it does it.
"""
