"""Downloads from a server on this machine: kept only if their digest is the registered one."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pooch
import pytest

from harness.canon import sha256_hex
from harness.errors import InputError
from harness.inputs.fetch import AlreadyThere, Fetched, NotFetched, fetch_inputs


class Quiet(SimpleHTTPRequestHandler):
    """A file server that notes requests instead of printing them."""

    def log_message(self, format, *args):  # noqa: A002
        """Note the requested path on the server."""
        self.server.asked.append(self.path)


@pytest.fixture
def server(tmp_path):
    """Serves tmp_path/served on 127.0.0.1; `.asked` lists the requests."""
    (tmp_path / "served").mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "served"))) as httpd:
        httpd.asked = []
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield httpd
        httpd.shutdown()
        thread.join()


@pytest.fixture
def url(server):
    """The address of a served file."""
    return lambda name: f"http://127.0.0.1:{server.server_port}/{name}"


@pytest.fixture
def served(tmp_path, server):
    """The served folder."""
    return tmp_path / "served"


@pytest.fixture
def folder(tmp_path):
    """The folder to fetch into; it doesn't exist yet."""
    return tmp_path / "inputs"


def test_fetches_once(folder, server, served, url, registered):
    """A missing file is fetched under its registered name; asked again, nothing is requested."""
    (served / "remote").write_bytes(b"pool")
    file = registered(b"pool", location=url("remote"))
    (first,) = fetch_inputs((file,), folder)
    assert isinstance(first, Fetched)
    assert first.present.path == folder / "pool.jsonl"
    assert (folder / "pool.jsonl").read_bytes() == b"pool"
    (second,) = fetch_inputs((file,), folder)
    assert second == AlreadyThere(present=first.present)
    assert server.asked == ["/remote"]


def test_valid_file_of_another_name_is_enough(folder, server, url, registered, pool_bytes):
    """A valid file under any name isn't fetched again."""
    folder.mkdir()
    (folder / "mine").write_bytes(pool_bytes)
    (state,) = fetch_inputs((registered(pool_bytes, location=url("remote")),), folder)
    assert isinstance(state, AlreadyThere)
    assert server.asked == []


def test_wrong_digest(folder, served, url, registered, pool_bytes):
    """Other bytes at the address are an error with both digests; they aren't kept and nothing valid is removed."""
    folder.mkdir()
    (folder / "kept").write_bytes(b"valid")
    (served / "remote").write_bytes(b"other")
    files = (registered(b"valid", name="kept"), registered(pool_bytes, location=url("remote")))
    with pytest.raises(InputError, match=f"SHA-256 {sha256_hex(pool_bytes)}, found {sha256_hex(b'other')}"):
        fetch_inputs(files, folder)
    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [("kept", b"valid")]


def test_file_in_the_way(folder, server, url, registered, pool_bytes):
    """An altered file under the registered name isn't overwritten."""
    folder.mkdir()
    (folder / "pool.jsonl").write_bytes(b"mine")
    with pytest.raises(InputError, match=f"found {sha256_hex(b'mine')}. Move this file away"):
        fetch_inputs((registered(pool_bytes, location=url("remote")),), folder)
    assert (folder / "pool.jsonl").read_bytes() == b"mine"
    assert server.asked == []


def test_not_found_at_the_address(folder, url, registered, pool_bytes):
    """A failed request names the address and leaves the folder empty."""
    with pytest.raises(InputError, match=r"/absent: expected a file, found 404 Client Error"):
        fetch_inputs((registered(pool_bytes, location=url("absent")),), folder)
    assert list(folder.iterdir()) == []


def test_nobody_listens(folder, server, url, registered, pool_bytes):
    """A refused connection is an input error, not a traceback."""
    address = url("remote")
    server.shutdown()
    server.server_close()
    with pytest.raises(InputError, match=r"/remote: expected a file, found"):
        fetch_inputs((registered(pool_bytes, location=address),), folder)


@pytest.mark.parametrize("location", ["embedded", "openai/x at 3101c7d", "ask http://127.0.0.1/ nicely", "file:///etc"])
def test_no_address_is_reported(folder, registered, pool_bytes, location):
    """A location that isn't a web address of a file is reported with the location, not tried."""
    (state,) = fetch_inputs((registered(pool_bytes, location=location),), folder)
    assert isinstance(state, NotFetched)
    assert (state.name, state.location) == ("pool", location)


def test_unfrozen_is_not_fetched(folder, server, url, registered):
    """Without a registered digest nothing is fetched."""
    (state,) = fetch_inputs((registered(None, location=url("remote")),), folder)
    assert isinstance(state, NotFetched)
    assert "unfrozen" in state.why
    assert server.asked == []


def test_fetches_the_archive(folder, served, url, registered, zipped):
    """A file that is distributed inside an archive is fetched with it, and the member is the registered file."""
    archive = zipped(served / "public.zip", "test.json", b"pool", location=url("public.zip"))
    (state,) = fetch_inputs((registered(b"pool", archives=[archive]),), folder)
    assert isinstance(state, Fetched)
    assert (state.present.path, state.present.member) == (folder / "public.zip", "test.json")


def test_fetched_archive_with_a_wrong_member(folder, served, url, registered, zipped):
    """An archive with the registered digest and other bytes in its member isn't taken for the file."""
    archive = zipped(served / "public.zip", "test.json", b"other", location=url("public.zip"))
    with pytest.raises(InputError, match=f"public.zip!test.json: expected .*, found {sha256_hex(b'other')}"):
        fetch_inputs((registered(b"pool", archives=[archive]),), folder)


def test_log_level_is_restored(folder, url, registered, pool_bytes, capsys):
    """The download library says nothing by itself, and its logger is left as it was."""
    before = pooch.get_logger().level
    with pytest.raises(InputError):
        fetch_inputs((registered(pool_bytes, location=url("absent")),), folder)
    assert pooch.get_logger().level == before
    assert capsys.readouterr() == ("", "")
