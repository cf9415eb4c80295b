"""A broker's configuration: one table of settings, read from TOML, environment and flags.

Owns the types of the configuration and their reading. Must not know the parts that it configures.
Invariant: a `Config` in hand has been checked whole; what is wrong is told all at once, each with
its place and what would be right.

    file (document, places) ┐
    environment             ├─▶ reader: values, named sections ─▶ checks ─▶ Config
    flags                   ┘        ▲ table: key, type, default, unit, limits, meaning
                                     └─ show: the values with their origins, and the page of all
"""

from broker.config.checks import is_loopback
from broker.config.errors import ConfigError
from broker.config.links import LinksSection
from broker.config.reader import Loaded, SettingOrigin, load
from broker.config.table import (
    BrokerSection,
    Config,
    DataSection,
    HttpLimitsSection,
    HttpSection,
    IntakeSection,
    JournalSection,
    LogSection,
    MqttSection,
)

__all__ = [
    "BrokerSection",
    "Config",
    "ConfigError",
    "DataSection",
    "HttpLimitsSection",
    "HttpSection",
    "IntakeSection",
    "JournalSection",
    "LinksSection",
    "Loaded",
    "LogSection",
    "MqttSection",
    "SettingOrigin",
    "is_loopback",
    "load",
]
