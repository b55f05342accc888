"""Files of other file systems are the same rows, and no message shows credentials or values."""

import gzip
import io
import json
import socket
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.sources.stores import serving

from dp_sips.errors import InputError
from dp_sips.sources import open_source, remote
from dp_sips.sources.addresses import is_remote, shown_address, split_address

TABLE = pa.table({"u": ["1", "2", "1"], "i": ["a", "b", "a"]})
ROWS = Counter({("1", "a"): 2, ("2", "b"): 1})
TWICE = Counter({("1", "a"): 4, ("2", "b"): 2})


def parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(TABLE, sink)
    return sink.getvalue()


def arrow() -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return sink.getvalue()


CSV = b"u,i\n1,a\n2,b\n1,a\n"
LINES = "".join(json.dumps(row) + "\n" for row in TABLE.to_pylist()).encode()
FILES = {
    "a.parquet": parquet(),
    "a.arrow": arrow(),
    "a.csv": CSV,
    "a.csv.gz": gzip.compress(CSV),
    "a.jsonl": LINES,
}
HIVE = {
    "logs/day=1/country=a b/0.parquet": parquet(),
    "logs/day=2/country=a%2Fb/0.parquet": parquet(),
    "logs/_SUCCESS": b"",
    "logs/_delta_log/0.parquet": b"not data",
    "logs/day=2/.0.parquet": b"not data",
    "logs/notes.txt": b"not data",
}
DAYS = {("1", "1"), ("2", "1"), ("1", "2"), ("2", "2")}


@pytest.fixture
def memory() -> Iterator[Any]:
    """The file system memory://, with files of every kind."""
    store = fsspec.filesystem("memory")
    for name, content in (FILES | HIVE).items():
        store.pipe(f"/box/{name}", content)
    yield store
    store.rm("/box", recursive=True)


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The options of an address of a bucket with the same files."""
    with serving(FILES | HIVE, bucket="box") as host:
        yield f"?endpoint_override={host}&scheme=http&region=eu-north-1"


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "something")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("name", FILES)
def test_files_of_fsspec(name: str, read: Any) -> None:
    assert read(f"memory://box/{name}") == ROWS
    assert open_source(f"memory://box/{name}", user="u", item="i").feed.label.startswith(
        f"memory://box/{name}"
    )


@pytest.mark.parametrize("name", FILES)
def test_files_of_s3(name: str, s3: str, read: Any) -> None:
    assert read(f"s3://box/{name}{s3}") == ROWS


@pytest.mark.parametrize("name", FILES)
def test_files_of_a_web_server(name: str, read: Any) -> None:
    with serving(FILES) as host:
        assert read(f"http://{host}/{name}?sig=SECRET") == ROWS


@pytest.mark.usefixtures("memory")
def test_folders_and_globs(s3: str, read: Any) -> None:
    for scheme, options in (("memory", ""), ("s3", s3), ("s3a", s3)):
        for place in ("logs", "logs/", "logs/day=*", "logs/*/*/*.parquet", "**/day=*/*/0.parquet"):
            found = read(f"{scheme}://box/{place}{options}", item="day")
            assert set(found) == DAYS, place
            assert found.total() == 6
        countries = read(f"{scheme}://box/logs/day=?/c*/{options}", user="country")
        assert set(countries) == {("a b", "a"), ("a b", "b"), ("a/b", "a"), ("a/b", "b")}
        source = open_source(f"{scheme}://box/logs{options}", user="u", item="day")
        assert source.feed.label == f"2 files from {scheme}://box/logs/day=…/country=…/0.parquet on"
        assert source.rows() == 6


@pytest.mark.usefixtures("memory")
def test_here_and_elsewhere(tmp_path: Any, read: Any) -> None:
    path = tmp_path / "b c.csv"
    path.write_bytes(CSV)
    assert read(path.as_uri()) == ROWS
    assert read([str(path), "memory://box/a.csv", "memory://box/a.csv"]) == TWICE


@pytest.mark.usefixtures("memory")
def test_what_is_not_there(s3: str, read: Any) -> None:
    for scheme, options in (("memory", ""), ("s3", s3)):
        with pytest.raises(InputError, match=rf"^no such file: {scheme}://box/b\.csv$"):
            read(f"{scheme}://box/b.csv{options}")
        with pytest.raises(InputError, match=rf"no data file matches {scheme}://box/\*\.tsv; kn"):
            read(f"{scheme}://box/*.tsv{options}")
        with pytest.raises(InputError, match=r"notes\.txt has no suffix that tells its kind"):
            read(f"{scheme}://box/logs/notes.txt{options}")
    with serving(FILES) as host, pytest.raises(InputError, match=rf"no conn.*: http://{host}/b\."):
        read(f"http://{host}/b.csv?sig=SECRET")


def shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize(
    "address",
    [
        "http://someone:SECRET@127.0.0.1:1/a.csv",
        "http://127.0.0.1:1/a.csv?SECRET",
        "http://127.0.0.1:1/a.csv?sig=SECRET#x",
        "s3://someone:SECRET@box/a.csv?nonsense=SECRET",
        "s3://someone:SEC/SECRET@box/a.csv",
        "abfs://box:SECRET@here/a.csv?nonsense=SECRET",
        "sftp://someone:SECRET@here/a.csv",
        "nothing://someone:SECRET@here/a.csv?SECRET=1",
        "s3://box/day=SECRET/a.csv?nonsense=1",
    ],
)
def test_no_message_shows_credentials_or_values(address: str, read: Any) -> None:
    with pytest.raises(InputError, match=r"a\.csv") as error:
        read(address)
    assert "SECRET" not in str(error.value)
    text = shown(error.value).replace(address, "")  # pytest's own lines have it as a parameter
    assert "SECRET" not in text


@pytest.fixture
def nobody() -> Iterator[str]:
    """A port of this machine where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def gcs_options(address: str) -> dict[str, Any]:
    """Return how Arrow asks Google's store: what it would pickle."""
    options: dict[str, Any] = remote._place(address).filesystem.__reduce__()[1][0]
    return options


def test_google_is_not_asked_for_many_minutes() -> None:
    usual = timedelta(seconds=remote._PATIENCE)
    assert gcs_options("gs://box/a.csv")["retry_time_limit"] == usual
    options = gcs_options("gcs://anonymous@box/a.csv?endpoint_override=here:1&scheme=http")
    assert options["retry_time_limit"] == usual
    assert options["endpoint_override"] == "here:1"
    assert options["anonymous"]
    for given in ("?retry_limit_seconds=90", "?scheme=https&retry_limit_seconds=90"):
        assert gcs_options(f"gs://box/a.csv{given}")["retry_time_limit"] == timedelta(seconds=90)


def test_a_store_that_does_not_answer(
    nobody: str, monkeypatch: pytest.MonkeyPatch, read: Any
) -> None:
    monkeypatch.setattr(remote, "_PATIENCE", 1)
    options = f"?endpoint_override={nobody}&scheme=http"
    with pytest.raises(InputError, match=r"says UNAVAILABLE: check the network and the cred"):
        read(f"gs://anonymous@box/a.csv{options}")
    with pytest.raises(
        InputError, match=r"says NETWORK_CONNECTION: check the network, the cred.*, and the .*regio"
    ):
        read(f"s3://box/a.csv{options}&region=eu-north-1")


@pytest.mark.parametrize("address", ["s3://box/a.csv", "gs://box/a.csv", "abfs://box@here/a.csv"])
def test_an_unknown_option_is_named(address: str, read: Any) -> None:
    with pytest.raises(InputError, match=r"Arrow does not know, 'regoin': correct its") as error:
        read(f"{address}?regoin=SECRET")
    assert "SECRET" not in str(error.value)


def test_what_to_install(monkeypatch: pytest.MonkeyPatch, read: Any) -> None:
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "fsspec", None)
        with pytest.raises(InputError, match=r"without fsspec: pip install 'dp-sips\[remote\]'$"):
            read("https://example.org/a.csv")
    with pytest.raises(InputError, match=r"sftp://here/a\.csv cannot be read: .*paramiko"):
        read("sftp://here/a.csv")
    with pytest.raises(InputError, match=r"nothing installed knows nothing://; there are abfs, "):
        read("nothing://here/a.csv")
    with pytest.raises(InputError, match=r"no scheme: write it as s3://bucket/key"):
        read("simplecache::https://example.org/a.csv")


def test_a_web_server_that_sends_whole_files(read: Any) -> None:
    """Enough for text of any size; Parquet begins at its end."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"u": range(2**20), "i": range(2**20)}), sink, use_dictionary=False)
    big = {"a.csv": b"u,i\n" + b"1,a\n" * 2**21, "a.parquet": sink.getvalue()}
    assert all(len(content) > 1 << 23 for content in big.values())
    with serving(big, parts=False) as host:
        assert read(f"http://{host}/a.csv") == Counter({("1", "a"): 2**21})
        with pytest.raises(
            InputError, match=r"a\.parquet cannot be read: the server does not send"
        ):
            read(f"http://{host}/a.parquet")


def test_a_web_server_that_refuses(read: Any) -> None:
    with serving({"forbidden.csv": CSV}) as host, pytest.raises(InputError, match=r"cannot|no con"):
        read(f"http://{host}/forbidden.csv")


def test_a_file_that_breaks_off(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a library raises while rows are read is an error that says no more than why."""
    source = open_source("memory://box/a.csv", user="u", item="i")

    class Broken(io.BytesIO):
        def read(self, *_: Any) -> bytes:
            raise RuntimeError("SECRET")

    monkeypatch.setattr(type(memory), "_open", lambda *_, **__: Broken())
    with pytest.raises(InputError, match=r"^memory://box/a\.csv cannot be read: .*RuntimeError"):
        list(source.batches())


def test_addresses() -> None:
    assert is_remote("s3://box/a.csv")
    assert not is_remote("file:///box/a.csv")
    assert not is_remote("box/a.csv")
    assert split_address("S3://box/a?.csv?region=x") == ("s3", "box", "/a?.csv", "?region=x")
    assert split_address("https://h/a.csv?x") == ("https", "h", "/a.csv", "?x")
    assert shown_address("abfss://box:key@here/a.csv") == "abfss://box@here/a.csv"
    assert shown_address("s3://a:b/c@box/d=1/a.csv") == "s3://box/d=…/a.csv"
