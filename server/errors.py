"""What the server tier refuses, as sentences.

Owns the errors that a user may meet before a job runs. Must not know Spark. Invariant: each says
what was found, and what to do.
"""

from language.errors import HeadwaterError


class ServerError(HeadwaterError):
    """The tier cannot start, or not go on."""


class JavaError(ServerError):
    """No Java that Spark could run on."""


class JobsError(ServerError):
    """A file of jobs is faulty; the text holds every fault, one a line."""
