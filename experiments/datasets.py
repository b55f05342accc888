"""The data sets of the paper's evaluation, and those that stand in for what could not be had.

    python experiments/datasets.py [--data DIR] [--cache DIR] [names …]

prints which ones DIR holds, how to get the others, and what the paper and we count in them. DIR is
$DP_SIPS_DATA unless told. It holds prepared Parquet files, or files as they were
published, zipped or not: these are taken apart into words once, and the words kept in the cache.

    from datasets import available, find_data
    folder = find_data()
    for dataset in available(folder):
        dp_sips.select_partitions(dataset.load(folder), user="user", item="item", …)
"""

import argparse
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from published import MissingDataError, Published

import dp_sips
import dp_sips.cli

SYNTHETIC_USERS: Final = 100_000
"""Users of the synthetic set unless told: the paper has 80 million."""


@dataclass(frozen=True)
class Counts:
    """The size of a data set; rows are documents in the paper, words in a prepared file."""

    users: int
    rows: int
    vocabulary: int

    def __str__(self) -> str:
        return f"{self.users:>10,} {self.rows:>13,} {self.vocabulary:>11,}"


@dataclass(frozen=True)
class Dataset:
    """One data set: what it is, whose its rows are, what to expect, and how to get it.

    The paper's have `paper`, its own counts; files that we have in prepared form have `expected`
    counts and a checksum. `stands_for` names the paper's set of which this is a part or a likeness.
    """

    name: str
    what: str
    users: str
    paper: Counts | None = None
    published: Published | None = None
    stands_for: str | None = None
    expected: Counts | None = None
    sha256: str | None = None

    def load(self, folder: Path, cache: Path | None = None) -> Path:
        """Return a Parquet file with the columns "user" and "item", made now if need be."""
        cache = cache or default_cache()
        if self.name == "synthetic":
            return synthetic(SYNTHETIC_USERS, cache)
        if prepared := self.prepared(folder):
            return prepared
        places = self.published.find(folder) if self.published else None
        if self.published is None or places is None:
            raise MissingDataError(self.how_to_get(folder))
        return self.published.prepare(places, self.name, cache)

    def prepared(self, folder: Path) -> Path | None:
        """Return the file that was prepared for this project, if it is there."""
        path = folder / f"{self.name}.parquet"
        return path if self.sha256 and path.is_file() else None

    def is_there(self, folder: Path) -> bool:
        """Whether `load` will find what it needs."""
        found = self.prepared(folder) or (self.published and self.published.find(folder))
        return self.name == "synthetic" or bool(found)

    def how_to_get(self, folder: Path) -> str:
        """Say what to put where."""
        if self.published is None:
            return f"{self.name}: put {self.name}.parquet, prepared for this project, into {folder}"
        files = " and ".join(self.published.files)
        place = folder / self.published.folder
        return f"{self.name}: download {files} of {self.published.address} into {place}"

    def has_our_checksum(self, folder: Path) -> bool:
        """Whether the prepared file is the one that the expected counts are of."""
        path = self.prepared(folder)
        if path is None:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256


def available(folder: Path) -> list[Dataset]:
    """Return the data sets that `load` can give, the paper's first."""
    return [dataset for dataset in DATASETS if dataset.is_there(folder)]


def missing(folder: Path) -> list[Dataset]:
    """Return the others; `how_to_get` says how to get them."""
    return [dataset for dataset in DATASETS if not dataset.is_there(folder)]


def by_name(name: str) -> Dataset:
    """Return the data set of this name."""
    known = {dataset.name: dataset for dataset in DATASETS}
    if name not in known:
        raise SystemExit(f"no data set {name!r}; known: {', '.join(known)}")
    return known[name]


def find_data(given: Path | None = None) -> Path:
    """Return the folder that was given, or $DP_SIPS_DATA."""
    folder = given or Path(os.environ.get("DP_SIPS_DATA") or "data")
    if not folder.is_dir():
        raise SystemExit(f"no folder {folder}: name one with --data DIR or $DP_SIPS_DATA")
    return folder


def default_cache() -> Path:
    """Return where prepared data is kept: outside of the project."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dp-sips"


def synthetic(users: int, cache: Path | None = None, seed: int = 0) -> Path:
    """Return the paper's synthetic data for so many users, generated if need be."""
    path = (cache or default_cache()) / f"synthetic-{users}-{seed}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        words = ("generate", "--users", users, "--seed", seed, "-o", path, "--quiet")
        if dp_sips.cli.main(list(map(str, words))) != 0:
            raise SystemExit(f"{path} could not be generated")
    return path


def count(path: Path) -> Counts:
    """Count users, rows and different items of a prepared file."""
    with pq.ParquetFile(path) as file:
        users, items = (pc.count_distinct(file.read([name])[name]) for name in ("user", "item"))
        return Counts(users.as_py(), file.metadata.num_rows, items.as_py())


_KAGGLE = "https://www.kaggle.com/datasets"
_DPSU = "https://github.com/heyyjudes/differentially-private-set-union"
_EACH_TEXT = "each text is a user"

DATASETS: Final = (
    Dataset(
        "reddit",
        "posts of r/AskReddit",
        "the post's author",
        Counts(223_388, 373_983, 155_701),
        Published(_DPSU, ("clean_askreddit.csv",), ("clean_text",), "author"),
    ),
    Dataset(
        "twitter",
        "tweets to and from the customer support of companies",
        "the tweet's author",
        Counts(702_682, 2_811_774, 1_300_123),
        Published(
            f"{_KAGGLE}/thoughtvector/customer-support-on-twitter",
            ("twcs.csv",),
            ("text",),
            "author_id",
        ),
    ),
    Dataset(
        "finance",
        "headlines about stocks",
        _EACH_TEXT,
        Counts(1_400_465, 1_400_465, 267_256),
        Published(
            f"{_KAGGLE}/miguelaenlle/massive-stock-news-analysis-db-for-nlpbacktests",
            ("analyst_ratings_processed.csv",),
            ("title",),
        ),
    ),
    Dataset(
        "imdb",
        "reviews of films",
        _EACH_TEXT,
        Counts(49_999, 49_999, 194_532),
        Published(
            f"{_KAGGLE}/lakshmi25npathi/imdb-dataset-of-50k-movie-reviews",
            ("IMDB Dataset.csv",),
            ("review",),
        ),
        expected=Counts(49_999, 11_852_648, 158_795),
        sha256="cebabfbc58b6adf8314d0cf5bde58fa213b8f3158b9fe4f6017d916baefa946d",
    ),
    Dataset(
        "wikipedia",
        "abstracts of Wikipedia articles",
        _EACH_TEXT,
        Counts(245_103, 245_103, 631_866),
        Published(
            f"{_KAGGLE}/markwijkhuizen/simplenormal-wikipedia-abstracts-v1",
            ("*.csv",),
            ("abstract", "normal_abstract", "text"),
        ),
    ),
    Dataset(
        "amazon",
        "reviews of products",
        _EACH_TEXT,
        Counts(4_000_000, 4_000_000, 4_250_427),
        Published(f"{_KAGGLE}/kritanjalijain/amazon-reviews", ("train.csv", "test.csv"), 2),
    ),
    Dataset(
        "synthetic",
        "the paper's generated data, with fewer users",
        "as generated",
        Counts(80_000_000, 4_643_596_660, 741_129_124),
    ),
    Dataset(
        "wiki",
        "first paragraphs of Wikipedia articles",
        _EACH_TEXT,
        stands_for="wikipedia",
        expected=Counts(325_028, 25_340_038, 628_514),
        sha256="ad1e5df05d16306c5a03ba7cd8ba81fac465778647ccd069ea563408debc6e6e",
    ),
    Dataset(
        "reddit_posts",
        "posts of Reddit, titles and texts",
        _EACH_TEXT,
        stands_for="reddit",
        expected=Counts(299_964, 14_875_379, 304_248),
        sha256="d5ce2ba7a27c3a39e2eed93a5a6506ffc2d231a3cdd26c1706b03f164fee4b78",
    ),
    Dataset(
        "askreddit_1pct",
        "a small part of reddit",
        "the post's author",
        stands_for="reddit",
        expected=Counts(3_486, 101_767, 10_889),
        sha256="b381db8f436d2e3eb5f88677f4c58b580cbd32dca52b92542f3f2315cfb44aa6",
    ),
    Dataset(
        "finance_10k",
        "a small part of finance",
        _EACH_TEXT,
        stands_for="finance",
        expected=Counts(9_993, 117_320, 13_503),
        sha256="ef01207ef11a8c92d663e9e81367956118425941ba1e86aca11cf19b2ac2e348",
    ),
    Dataset(
        "jeopardy",
        "clues and answers of a quiz: short texts, as in finance",
        _EACH_TEXT,
        expected=Counts(538_845, 9_046_713, 186_484),
        sha256="e2458c5c59cbf240f7f97c92e9d15e7e09fad1e6dfea0a572159c22a57281af1",
    ),
    Dataset(
        "npm_deps",
        "what packages depend on",
        "the package",
        expected=Counts(290_563, 2_345_507, 94_391),
        sha256="786e547c1eef72f80781f108163190c57c97f5aa8060f374d007bb1aeb3ba7d7",
    ),
    Dataset(
        "retail",
        "baskets of a supermarket",
        "the basket",
        expected=Counts(88_162, 908_576, 16_470),
        sha256="cd0687e751c66c481ba2d52e36055c100e6e3187121b57f1ea331203af43667a",
    ),
    Dataset(
        "acl_titles",
        "titles of papers",
        "the author",
        expected=Counts(116_397, 3_875_031, 60_315),
        sha256="544a265fa2948f58eca10bb67c463883f5a288c1567e47946c2cfbbf66d7114b",
    ),
    Dataset(
        "amazon_beauty",
        "which products were reviewed",
        "the reviewer",
        expected=Counts(52_204, 394_908, 57_289),
        sha256="58e906790498a328adc0f14e50fb763c51b10f3fc6883325bd0d4ccda1467972",
    ),
)
"""The paper's seven in the order of its table, what stands in for some, and others."""


def main() -> None:
    """Print all that there is to say about data sets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of data")
    parser.add_argument("--cache", type=Path, help="folder for prepared data (~/.cache/dp-sips)")
    parser.add_argument("names", nargs="*", help="data sets; all unless named")
    options = parser.parse_args()
    folder = find_data(options.data)
    print(f"{'':<17} {'users':>10} {'rows':>13} {'vocabulary':>11}   in {folder}")
    for dataset in [by_name(name) for name in options.names] or DATASETS:
        for line in report(dataset, folder, options.cache):
            print(line, flush=True)


def report(dataset: Dataset, folder: Path, cache: Path | None = None) -> Iterator[str]:
    """Yield what the paper says of a data set, what we expect, and what is there or missing."""
    if dataset.stands_for:
        role = f"stands in for {dataset.stands_for}"
    else:
        role = "the paper's" if dataset.paper else "not in the paper"
    yield f"{dataset.name} ({role}): {dataset.what}; user: {dataset.users}"
    for who, counts in (("paper", dataset.paper), ("expected", dataset.expected)):
        if counts:
            yield f"        {who:<9} {counts}"
    try:
        path = dataset.load(folder, cache)
    except MissingDataError as error:
        yield f"        MISSING   {error}"
        return
    except (dp_sips.DpSipsError, pa.ArrowException) as error:
        yield f"        PROBLEM   {error}"
        return
    note = ""
    if path == dataset.prepared(folder):
        note = "checksum fits" if dataset.has_our_checksum(folder) else "ANOTHER CHECKSUM"
    yield f"        {'counted':<9} {count(path)}   {note}".rstrip()


if __name__ == "__main__":
    main()
