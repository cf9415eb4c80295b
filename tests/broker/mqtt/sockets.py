"""Real sockets for tests: a server in the test's own loop, mosquitto's clients, certificates."""

import asyncio
import shutil
import ssl
import subprocess
from contextlib import asynccontextmanager, suppress

from broker.mqtt.codec import packets as p
from broker.mqtt.codec.decoder import Decoder, TopicNames, encode
from broker.mqtt.limits import MqttLimits
from broker.mqtt.listeners import Listener
from broker.mqtt.server import MqttServer
from tests.broker.mqtt.world import HEADWATER

PATIENCE_S = 8.0


class Application:
    """Completes everything at once and remembers it."""

    def __init__(self):
        self.server = None
        self.messages = []
        self.fail_on = None

    def on_publish(self, messages):
        for message in messages:
            if message.payload == self.fail_on:
                raise RuntimeError("planted")
            self.messages.append(message)
            self.server.complete(message.token)


@asynccontextmanager
async def serving(*listeners, **options):
    """A started server on any free port of loopback, with its application."""
    application = Application()
    options.setdefault("prefix", HEADWATER)
    chosen = listeners or (Listener(port=0),)
    server = application.server = MqttServer(application, listeners=chosen, **options)
    server.application = application
    await server.start()
    server.port = server.addresses()[0][1]
    try:
        yield server
    finally:
        await server.stop()


async def until(condition):
    """Wait for a condition of the server, which no client could tell us; bounded."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - nothing in the server tells when
            await asyncio.sleep(0.002)


class Program:
    """One of mosquitto's clients as a process."""

    def __init__(self, process):
        self.process = process

    @classmethod
    async def start(cls, name, *arguments):
        process = await asyncio.create_subprocess_exec(
            shutil.which(name),
            *map(str, arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        return cls(process)

    async def result(self):
        """Exit status, lines of standard output, text of standard error."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                out, errors = await self.process.communicate()
        except TimeoutError:
            self.process.kill()
            out, errors = await self.process.communicate()
        return self.process.returncode, out.decode().splitlines(), errors.decode()

    async def kill(self):
        """End without a DISCONNECT."""
        with suppress(ProcessLookupError):
            self.process.kill()
        await self.process.communicate()


async def mosquitto_pub(port, *arguments):
    program = await Program.start("mosquitto_pub", "-h", "127.0.0.1", "-p", port, *arguments)
    return await program.result()


async def mosquitto_sub(server, topic, count, *arguments):
    """A subscriber that ends after `count` messages; it is subscribed, or done, on return."""
    before = server.subscribers(topic)
    program = await Program.start(
        *("mosquitto_sub", "-h", "127.0.0.1", "-p", server.port, "-t", topic, "-C", count),
        *("-F", "%t|%q|%r|%p", "-W", int(PATIENCE_S), *arguments),
    )
    ended = asyncio.ensure_future(program.process.wait())
    await until(lambda: server.subscribers(topic) > before or ended.done())
    ended.cancel()
    return program


class RawClient:
    """A client of packets on an asyncio stream, for what mosquitto's would not do."""

    def __init__(self, reader, writer, version):
        self.reader, self.writer, self.version = reader, writer, version
        limits = MqttLimits()
        self.decoder = Decoder(limits, TopicNames(limits), version)
        self.got = []

    @classmethod
    async def open(cls, port, version=p.V5, client_id="raw", context=None, **fields):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        client = cls(reader, writer, version)
        try:
            await client.send(p.Connect(version, client_id, **fields))
            client.welcome = await client.next()
        except BaseException:
            writer.transport.abort()
            raise
        return client

    async def send(self, *packets):
        self.writer.write(b"".join(encode(packet, self.version) for packet in packets))
        await self.writer.drain()

    async def next(self):
        """The next packet, or None at the end of the stream."""
        async with asyncio.timeout(PATIENCE_S):
            while not self.got:
                data = await self.reader.read(65536)
                if not data:
                    return None
                self.got += self.decoder.decode(data)
        return self.got.pop(0)

    async def close(self):
        self.writer.close()
        with suppress(ConnectionError, ssl.SSLError):
            await self.writer.wait_closed()


def make_certificates(folder, openssl):
    """A CA, a server's certificate for 127.0.0.1 and a client's named pump-7."""

    def run(*arguments):
        subprocess.run([openssl, *arguments], cwd=folder, check=True, capture_output=True)

    run(
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
        *("-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test-ca"),
        *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),
    )
    for name, subject in (("server", "/CN=127.0.0.1"), ("client", "/CN=pump-7")):
        run(
            *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", subject),
        )
        (folder / f"{name}.ext").write_text("subjectAltName=IP:127.0.0.1\n")
        run(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key"),
            *("-CAcreateserial", "-days", "2", "-out", f"{name}.pem"),
            *("-extfile", f"{name}.ext"),
        )
    return folder
