"""The tier that hands results to Spark. Nothing is built here yet.

Will own the reader of the output log. Must not be needed by a broker: it is the extra `[server]`.
"""
