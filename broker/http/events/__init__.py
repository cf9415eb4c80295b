"""Events by HTTP, for devices and scripts that speak no MQTT.

Problem: what comes by HTTP must be exactly what comes by MQTT, or a second way in would have
rights, refusals and promises of its own.

    body ── parts ──▶ one payload for each event, with type, source and place
                        │
      rights: may this user publish there? all of them, or the request is refused whole
                        │
      the core, as a payload of a topic ──▶ journal ──▶ the answer

Owns the forms of a body: one event, an array, or a line for each. Must not know what an event
means: the core decodes it as it decodes what MQTT brings. Invariant: each event of a body that is
taken is handed on once, byte for byte, and each that is not has a place and a reason.
"""
