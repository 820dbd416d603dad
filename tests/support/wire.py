"""A wire between a store and its PostgreSQL server that breaks when it is told to."""

import contextlib
import socket
import threading


class Wire:
    """Between a store and the server. `on_commit` says what becomes of the next COMMIT:

    `answer lost`   the server does it, and nobody hears of it
    `never sent`    the server does not get it
    `late`          the store's end breaks first; the server gets it when `release` is set

    `down` counts the connections to refuse."""

    def __init__(self, connect):
        self._connect = connect
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.on_commit = None
        self.release = threading.Event()
        self.down = 0
        self.connections = 0
        self._open = []
        self._threads = []
        self._run(self._accept)

    def _run(self, work, *values):
        self._threads.append(threading.Thread(target=work, args=values, daemon=True))
        self._threads[-1].start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.down:
                    self.down -= 1
                    client.close()
                    continue
                self.connections += 1
                server = self._connect()
                self._open += [client, server]
                deaf = threading.Event()
                self._run(self._to_server, client, server, deaf)
                self._run(self._to_store, server, client, deaf)

    def _to_server(self, client, server, deaf):
        """What psycopg sends for a commit is one message, in one piece. (BEGIN names READ COMMITTED.)"""
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if b"COMMIT\x00" in data:
                    event, self.on_commit = self.on_commit, None
                    if event == "never sent":
                        break
                    if event == "answer lost":
                        deaf.set()
                    if event == "late":
                        client.shutdown(socket.SHUT_RDWR)
                        assert self.release.wait(20)
                server.sendall(data)
        _hang_up(client, server)

    def _to_store(self, server, client, deaf):
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if deaf.is_set():
                    break
                client.sendall(data)
        _hang_up(client, server)

    def cut(self):
        """Every connection breaks at once."""
        _hang_up(*self._open)

    def close(self):
        self.release.set()
        _hang_up(self._listener)
        self.cut()
        for thread in self._threads:
            thread.join(20)
            assert not thread.is_alive()
        for end in (self._listener, *self._open):
            end.close()


def _hang_up(*ends):
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
