"""The registry of data sets: published files are recognised and prepared, missing ones reported."""

import sys
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dp_sips
from dp_sips.sources import texts

ROOT = Path(__file__).parents[2]
PAPERS = ("reddit", "twitter", "finance", "imdb", "wikipedia", "amazon", "synthetic")

HEADLINES = "number,title,date,stock\n0,Tea up 3%,2020,T\n1,Jam falls,2020,J\n"
REVIEWS = 'review,sentiment\n"Tea, <br />jam",positive\n"He said ""tea""\nagain.",negative\n'
TWEETS = (
    "tweet_id,author_id,inbound,created_at,text,response_tweet_id,in_response_to_tweet_id\n"
    "1,shop,False,now,@7 Tea: https://t.co/x,2,\n2,7,True,now,Thanks!,,1\n3,7,True,now,tea?,,\n"
)
POSTS = "author,clean_text\nann,tea for two\n,tea alone\nann,jam\n"
# Where each file may lie, its content, and the words of each user.
PUBLISHED: dict[str, tuple[dict[str, str], dict[str, list[str]]]] = {
    "imdb": (
        {"IMDB Dataset.csv": REVIEWS},
        {"0": ["tea", "br", "jam"], "1": ["he", "said", "tea", "again"]},
    ),
    "finance": (
        {"analyst_ratings_processed.csv": HEADLINES},
        {"0": ["tea", "up", "3"], "1": ["jam", "falls"]},
    ),
    "twitter": (
        {"twcs/twcs.csv": TWEETS},
        {"shop": ["7", "tea"], "7": ["thanks", "tea"]},
    ),
    "reddit": (
        {"differentially-private-set-union/data/clean_askreddit.csv": POSTS},
        {"ann": ["tea", "for", "two", "jam"], "document 1": ["tea", "alone"]},
    ),
    "wikipedia": (
        {"simplenormal-wikipedia-abstracts-v1/all.csv": "title,abstract\nTea,Tea is a drink.\n"},
        {"0": ["tea", "is", "a", "drink"]},
    ),
    "amazon": (
        {
            "amazon-reviews/train.csv": '"2","Good","Good tea"\n"1","Bad","Bad jam"\n',
            "amazon-reviews/test.csv": '"1","So","so so"\n',
        },
        {"0": ["good", "tea"], "1": ["bad", "jam"], "2": ["so", "so"]},
    ),
}


@pytest.fixture
def datasets(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    monkeypatch.delitem(sys.modules, "datasets", raising=False)
    monkeypatch.delenv("DP_SIPS_DATA", raising=False)
    return import_module("datasets")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.mkdir()
    return path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def put(folder: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def words(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    table = pq.read_table(path)
    assert table.column_names == ["user", "item"]
    for user, item in zip(*(column.to_pylist() for column in table.columns), strict=True):
        found.setdefault(user, []).append(item)
    return found


class TestRegistry:
    def test_has_the_papers_seven_and_stand_ins(self, datasets: Any) -> None:
        assert tuple(d.name for d in datasets.DATASETS if d.paper) == PAPERS
        assert {d.stands_for for d in datasets.DATASETS} - {None} <= set(PAPERS)
        assert len({d.name for d in datasets.DATASETS}) == len(datasets.DATASETS)

    def test_every_set_can_be_had_somehow(self, datasets: Any) -> None:
        for dataset in datasets.DATASETS:
            assert dataset.published or dataset.sha256 or dataset.name == "synthetic"
            assert bool(dataset.sha256) == bool(dataset.expected)

    def test_names(self, datasets: Any) -> None:
        assert datasets.by_name("imdb").name == "imdb"
        with pytest.raises(SystemExit, match="no data set 'imbd'; known: reddit, twitter"):
            datasets.by_name("imbd")


class TestFolder:
    def test_an_empty_one_has_only_what_is_generated(self, datasets: Any, folder: Path) -> None:
        assert [d.name for d in datasets.available(folder)] == ["synthetic"]
        assert len(datasets.missing(folder)) == len(datasets.DATASETS) - 1

    def test_missing_sets_say_how_to_get_them(self, datasets: Any, folder: Path) -> None:
        for dataset in datasets.missing(folder):
            with pytest.raises(Exception, match=f"^{dataset.name}: (download|put) ") as raised:
                dataset.load(folder)
            assert type(raised.value).__name__ == "MissingDataError"
            assert str(folder) in str(raised.value)

    def test_where_it_is(
        self, datasets: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DP_SIPS_DATA", str(folder))
        assert datasets.find_data() == folder
        assert datasets.find_data(folder.parent) == folder.parent
        with pytest.raises(SystemExit, match="no folder nowhere: name one with --data"):
            datasets.find_data(Path("nowhere"))

    def test_a_prepared_file_is_used_as_it_is(self, datasets: Any, folder: Path) -> None:
        path = folder / "imdb.parquet"
        pq.write_table(pa.table({"user": [1, 1, 2], "item": ["a", "a", "b"]}), path)
        imdb = datasets.by_name("imdb")
        assert imdb.load(folder) == path
        assert imdb in datasets.available(folder)
        assert datasets.count(path) == datasets.Counts(2, 3, 2)
        assert not imdb.has_our_checksum(folder)
        assert "ANOTHER CHECKSUM" in "".join(datasets.report(imdb, folder))


class TestPublishedFiles:
    @pytest.mark.parametrize("name", PUBLISHED)
    def test_are_recognised_and_prepared(
        self, datasets: Any, folder: Path, cache: Path, name: str
    ) -> None:
        files, expected = PUBLISHED[name]
        put(folder, files)
        dataset = datasets.by_name(name)
        assert dataset in datasets.available(folder)
        assert words(dataset.load(folder, cache)) == expected

    @pytest.mark.parametrize("name", PUBLISHED)
    def test_may_lie_zipped_as_downloaded(
        self, datasets: Any, folder: Path, cache: Path, name: str
    ) -> None:
        files, expected = PUBLISHED[name]
        dataset = datasets.by_name(name)
        with zipfile.ZipFile(folder / f"{dataset.published.folder}.zip", "w") as archive:
            for place, content in files.items():
                archive.writestr(Path(place).name, content)
        assert words(dataset.load(folder, cache)) == expected

    def test_all_of_them_are_needed(self, datasets: Any, folder: Path) -> None:
        files, _ = PUBLISHED["amazon"]
        put(folder, dict(list(files.items())[:1]))
        assert datasets.by_name("amazon") in datasets.missing(folder)

    def test_common_names_alone_say_nothing(self, datasets: Any, folder: Path) -> None:
        put(folder, {"train.csv": "1,a,b\n", "test.csv": "1,a,b\n", "some.csv": "abstract\na\n"})
        assert [d.name for d in datasets.available(folder)] == ["synthetic"]

    def test_other_columns_are_named(self, datasets: Any, folder: Path, cache: Path) -> None:
        put(folder, {"twcs.csv": "tweet_id,text\n1,a\n"})
        with pytest.raises(
            Exception, match=r"twcs.csv lacks text, and author_id: its .* tweet_id, text"
        ):
            datasets.by_name("twitter").load(folder, cache)
        assert list(cache.iterdir()) == []


class TestCache:
    def test_is_used_until_the_files_change(
        self, datasets: Any, folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(folder, {"IMDB Dataset.csv": REVIEWS})
        imdb = datasets.by_name("imdb")
        first = imdb.load(folder, cache)
        write = dp_sips.write_tokens
        monkeypatch.setattr(dp_sips, "write_tokens", None)
        assert imdb.load(folder, cache) == first
        monkeypatch.setattr(dp_sips, "write_tokens", write)
        put(folder, {"IMDB Dataset.csv": "review,sentiment\nother,positive\n"})
        assert words(imdb.load(folder, cache)) == {"0": ["other"]}

    def test_a_failure_leaves_nothing_in_it(
        self, datasets: Any, folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(folder, {"IMDB Dataset.csv": REVIEWS})
        monkeypatch.setattr(texts, "find_spec", lambda _: None)
        with pytest.raises(dp_sips.UsageError, match="nltk"):
            datasets.by_name("imdb").load(folder, cache)
        assert list(cache.iterdir()) == []

    def test_synthetic_data_is_generated_once(self, datasets: Any, cache: Path) -> None:
        path = datasets.synthetic(50, cache)
        assert datasets.count(path).users == 50
        before = path.stat().st_mtime_ns
        assert datasets.synthetic(50, cache).stat().st_mtime_ns == before


def test_the_command_reports_every_set(
    datasets: Any,
    folder: Path,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    put(folder, PUBLISHED["finance"][0])
    (folder / "twcs.csv").write_bytes(b"author_id,text\na,fine\nb,\xff\n")
    monkeypatch.setattr(datasets, "SYNTHETIC_USERS", 20)
    monkeypatch.setattr(sys, "argv", ["datasets.py", "--data", str(folder), "--cache", str(cache)])
    datasets.main()
    out = capsys.readouterr().out
    for dataset in datasets.DATASETS:
        assert f"\n{dataset.name} (" in out
    blocks = {block.split(" ")[0]: block for block in out.split("\n") if "(" in block}
    assert set(blocks) == {d.name for d in datasets.DATASETS}
    assert f"counted   {datasets.Counts(2, 5, 5)}" in out
    assert "MISSING   imdb: download IMDB Dataset.csv of https://" in out
    assert "PROBLEM   " in out
    assert out.count("MISSING") == len(datasets.missing(folder))
