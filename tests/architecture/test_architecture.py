"""Rules of the house, as tests: who may import what, where randomness lives, what is public."""

import ast
import inspect
import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, ClassVar

import pytest

import dp_sips
from dp_sips.mechanisms import MECHANISMS, Sips

ROOT = Path(dp_sips.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
TREES = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text("utf-8")) for path in FILES}

# What each part may import of the package. Imports point one way: the command line knows all,
# select knows engines, engines know mechanisms, mechanisms know privacy, privacy knows errors.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "progress": set(),
    "validation": {"errors"},
    "room": {"errors"},
    "temporaries": set(),
    "booked": set(),
    "privacy": {"errors", "validation"},
    "mechanisms": {"errors", "privacy", "validation"},
    "text": {"errors", "validation"},
    "sources": {"errors", "progress", "room", "text"},
    "formats": {"errors"},
    "output": {"errors", "formats", "temporaries"},
    "folders": {"errors", "output", "temporaries"},
    "zeta": set(),
    "synthetic": {"errors", "progress"},
    "synthetic_files": {"progress", "synthetic", "validation", "zeta"},
    "tokens": {"errors", "formats", "output", "progress", "room", "sources", "text"},
    "notebook": set(),
    "rows": set(),
    "unwise": {"errors", "mechanisms"},
    "levers": {"errors", "mechanisms", "unwise"},
    "plotting": {"errors", "privacy"},
    "plan": {
        "errors", "levers", "mechanisms", "notebook", "plotting", "privacy", "unwise", "validation",
    },
    "comparison": {
        "errors", "levers", "mechanisms", "notebook", "plan", "plotting", "privacy", "validation",
    },
    "pages": {
        "errors", "mechanisms", "output", "plan", "privacy", "sources", "unwise", "validation",
    },
    "selection": {"notebook", "pages", "plan", "privacy", "rows"},
    "ledger": {"errors", "mechanisms", "output", "privacy"},
    "engines": {"errors", "mechanisms", "privacy", "progress", "room", "sources", "validation"},
    "sorting": {"engines", "sources"},
    "counts": {"notebook", "pages", "plan", "privacy", "rows", "selection"},
    "known": {"counts", "engines", "errors", "privacy", "selection", "sorting", "sources"},
    "count": {
        "counts", "engines", "errors", "known", "ledger", "mechanisms", "plan", "privacy",
        "progress", "room", "select", "selection", "sorting", "sources", "text", "unwise",
        "validation",
    },
    "checkpoint": {
        "engines", "errors", "ledger", "plan", "privacy", "sources", "temporaries",
    },
    "select": {
        "booked", "checkpoint", "engines", "errors", "known", "ledger", "levels", "mechanisms",
        "plan", "privacy", "progress", "room", "selection", "sorting", "sources", "text", "unwise",
        "validation",
    },
    "levels": {
        "engines", "errors", "mechanisms", "plan", "privacy", "sorting", "sources", "text",
    },
    "auditing": {
        "engines", "errors", "mechanisms", "plan", "privacy", "progress", "select", "sources",
        "unwise",
    },
    "__init__": {
        "auditing", "comparison", "count", "counts", "engines", "errors", "ledger", "mechanisms",
        "plan", "privacy", "select", "selection", "sources", "text", "tokens",
    },
    "__main__": {"cli"},
}  # fmt: skip
# The command line may use all but the inside of engines; it is nobody's to import.
ALLOWED["cli"] = {*ALLOWED} - {"sorting", "__main__"}

HEAVY = {
    "pyarrow", "pandas", "polars", "duckdb", "pyspark", "scipy", "tqdm", "cryptography", "nltk",
    "opendp", "dp_sips.engines", "dp_sips.sources", "dp_sips.select", "dp_sips.cli",
    "dp_sips.engines.memory.kernels",
}  # fmt: skip

# The only files that may use each library that is slow to import, or optional.
HOMES = {
    "cryptography": {"privacy/noise.py"},
    "pandas": {"sources/pandas_frames.py"},
    "polars": {"sources/polars_frames.py"},
    "duckdb": {"sources/duckdb_relations.py"},
    "tqdm": {"progress.py"},
    "nltk": {"text/tokenizer.py"},
    "opendp": {"mechanisms/discrete.py"},
    "dp_accounting": {"privacy/events.py"},
    "matplotlib": {"plotting.py"},
    "fsspec": {"sources/remote.py"},
}  # fmt: skip


def imported(tree: ast.AST) -> list[str]:
    """Return every module that is imported anywhere in a file, in full."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def part(path: str) -> str:
    return path.split("/", maxsplit=1)[0].removesuffix(".py")


def rest(name: str) -> str:
    """Return the part of the package that an imported name belongs to."""
    return name.split(".")[1]


def at_the_top(tree: ast.Module) -> list[str]:
    """Return what is imported when the module is."""
    return imported(
        ast.Module([n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))], [])
    )


class TestImports:
    def test_point_one_way(self) -> None:
        found: dict[str, set[str]] = defaultdict(set)
        for path, tree in TREES.items():
            for name in imported(tree):
                top, *rest = name.split(".")
                if top != "dp_sips":
                    continue
                target = rest[0] if rest and rest[0] in ALLOWED else "__init__"
                if target != part(path):
                    found[part(path)].add(target)
        assert set(found) <= set(ALLOWED), "a new part needs a line in ALLOWED"
        for name, targets in found.items():
            assert targets <= ALLOWED[name], f"{name} must not import {targets - ALLOWED[name]}"

    def test_have_no_circle(self) -> None:
        graph = {name: set(targets) for name, targets in ALLOWED.items()}
        graph["cli"].discard("__init__")
        while leaves := {name for name, targets in graph.items() if not targets & graph.keys()}:
            for leaf in leaves:
                del graph[leaf]
        assert graph == {}

    def test_privacy_rests_on_little(self) -> None:
        libraries = {"numpy", "scipy", "cryptography", "dp_accounting", "dp_sips"}
        for path, tree in TREES.items():
            if part(path) != "privacy":
                continue
            for name in imported(tree):
                top = name.split(".")[0]
                assert top in sys.stdlib_module_names | libraries, (path, name)
                if top == "dp_sips":
                    assert rest(name) in {"privacy", "errors", "validation"}, (path, name)
                if top == "scipy":
                    assert name.startswith("scipy.special."), (path, name)

    @pytest.mark.parametrize("library", HOMES)
    def test_libraries_have_a_home(self, library: str) -> None:
        users = {
            path
            for path, tree in TREES.items()
            if any(name.split(".")[0] == library for name in imported(tree))
        }
        assert users == HOMES[library]

    def test_scipy_is_for_privacy_mechanisms_and_audits(self) -> None:
        for path, tree in TREES.items():
            if part(path) not in {"privacy", "mechanisms", "auditing"}:
                assert not any(name.split(".")[0] == "scipy" for name in imported(tree)), path

    def test_engines_do_not_know_each_other(self) -> None:
        """Spark's workers run the compiled loops of the memory engine, and nothing else of it.

        Its driver hands small input over to that engine, in two files.
        """
        names = ("hashing", "kernels", "matching", "min_users", "settling", "tables", "weighing")
        driver = ("engines/spark/engine.py", "engines/spark/gathering.py")
        loops = tuple(f"dp_sips.engines.memory.{name}" for name in names)
        for path, tree in TREES.items():
            for name in imported(tree):
                if path.startswith("engines/memory/"):
                    assert not name.startswith("dp_sips.engines.reference"), path
                if path == "engines/reference.py" or path.startswith("engines/spark/"):
                    known = loops if path.startswith("engines/spark/") else ()
                    other = name.startswith("dp_sips.engines.memory")
                    assert not other or name.startswith(known) or path in driver, (path, name)
                if path.startswith("engines/"):
                    assert not name.startswith("dp_sips.privacy.budget"), path
                    assert not name.startswith("dp_sips.privacy.threshold"), path

    def test_pyspark_is_only_in_what_is_called_spark(self) -> None:
        for path, tree in TREES.items():
            if not path.startswith(("engines/spark", "sources/spark")):
                assert not any(name.split(".")[0] == "pyspark" for name in imported(tree)), path


class TestRandomness:
    MODULES = frozenset({"secrets", "random", "uuid"})
    HOME = "privacy/noise.py"
    # Data of people who do not exist.
    GENERATED = frozenset({
        "synthetic.py", "synthetic_files.py", "zeta.py", "cli/searches.py",
        "auditing/neighbours.py",
    })  # fmt: skip

    @pytest.mark.parametrize("path", TREES)
    def test_is_only_in_noise(self, path: str) -> None:
        if path == self.HOME:
            return
        for name in imported(TREES[path]):
            assert name.split(".")[0] not in self.MODULES, name
            assert "numpy.random" not in name
            assert name != "os.urandom"
        for node in ast.walk(TREES[path]):
            if isinstance(node, ast.Attribute):
                assert node.attr not in {"urandom", "getrandom", "SystemRandom"}
                if node.attr == "random" and isinstance(node.value, ast.Name):
                    assert path in self.GENERATED

    def test_noise_takes_it_from_the_system(self) -> None:
        names = imported(TREES[self.HOME])
        assert "secrets" in names
        assert not {"random", "uuid"} & set(names)
        attributes = {
            f"{n.value.id}.{n.attr}"
            for n in ast.walk(TREES[self.HOME])
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
        }
        assert "secrets.token_bytes" in attributes
        assert "np.random" not in attributes


def loaded_by(statement: str) -> set[str]:
    script = f"import sys, json\n{statement}\nprint(json.dumps(list(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return set(json.loads(run.stdout))


class TestLaziness:
    def test_the_package_loads_nothing_heavy(self) -> None:
        assert not HEAVY & loaded_by("import dp_sips")

    def test_a_selection_loads_only_what_it_needs(self) -> None:
        modules = loaded_by(
            "import dp_sips; dp_sips.select_partitions({1: ['a']}, rho=1, delta=0.1)"
        )
        # Not pandas: pyarrow itself looks for it, when it makes an array.
        optional = {"polars", "duckdb", "pyspark", "tqdm", "nltk", "opendp"}
        optional |= {"dp_sips.engines.reference"}
        optional |= {"dp_sips.sources.pandas_frames", "dp_sips.cli"}
        assert not optional & modules
        assert "dp_sips.engines.memory.kernels" in modules

    def test_the_reference_loads_no_compiled_loops(self) -> None:
        modules = loaded_by(
            "import dp_sips\n"
            "dp_sips.select_partitions({1: ['a']}, rho=1, delta=0.1, engine='reference')"
        )
        assert "dp_sips.engines.memory.kernels" not in modules

    def test_slow_libraries_are_imported_where_they_are_used(self) -> None:
        light = ("plan.py", *(p for p in TREES if part(p) in {"privacy", "mechanisms"}))
        for path in light:
            tops = {name.split(".")[0] for name in at_the_top(TREES[path])}
            assert not tops & {"scipy", "cryptography", "pyarrow", "opendp"}, path


KINDS = {
    name
    for path, tree in TREES.items()
    if part(path) == "mechanisms"
    for node in ast.walk(tree)
    if isinstance(node, ast.ClassDef)
    for name in [node.name]
}
"""Every kind of mechanism, round, coin, rule, policy and guarantee."""


class TestOneFilePerMechanism:
    """A mechanism is one file: nobody else asks which one it is."""

    def test_each_has_a_file_of_its_own(self) -> None:
        homes = {kind.__module__ for kind in MECHANISMS.values()}
        assert len(homes) == len(MECHANISMS) - 1  # MAD and MAD2R share one
        assert all(home.startswith("dp_sips.mechanisms.") for home in homes)

    @pytest.mark.parametrize("path", [path for path in TREES if part(path) != "mechanisms"])
    def test_nobody_else_asks_for_the_kind(self, path: str) -> None:
        for node in ast.walk(TREES[path]):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                asked = {
                    n.id for arg in node.args for n in ast.walk(arg) if isinstance(n, ast.Name)
                }
                assert node.func.id not in {"isinstance", "issubclass"} or not asked & KINDS, path
                assert node.func.id != "cast", f"{path}: a wider protocol instead of a cast"

    @pytest.mark.parametrize(
        "path", ["select.py", "plan.py", *(p for p in TREES if "engines" in p)]
    )
    def test_nobody_probes_for_optional_methods(self, path: str) -> None:
        """`getattr` with a default asks whether something can be done: the protocol says."""
        for node in ast.walk(TREES[path]):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "hasattr", path
                assert node.func.id != "getattr" or len(node.args) == 2, path

    def test_a_mechanism_from_elsewhere_is_accepted(self) -> None:
        class TwoRounds(Sips):
            """Somebody's own: SIPS in a subclass of another name, outside of the registry."""

            name: ClassVar[str] = "two-rounds"

        release = dp_sips.select_partitions(
            {user: ["tea"] for user in range(200)},
            epsilon=1,
            delta=1e-5,
            mechanism=TwoRounds(rounds=2),
        )
        assert release.certificate["mechanism"]["name"] == "two-rounds"
        assert [row["round"] for row in release.certificate["rounds"]] == [1, 2]

    @pytest.mark.parametrize("other", [Sips, object(), 3, None])
    def test_anything_else_is_not(self, other: Any) -> None:
        with pytest.raises(dp_sips.UsageError, match="mechanism must be a name or a mechanism"):
            dp_sips.plan(other, epsilon=1, delta=1e-5)

    def test_the_core_can_be_read_in_one_sitting(self) -> None:
        core = sum(
            len(path.read_text("utf-8").splitlines()) for path in (ROOT / "privacy").glob("*.py")
        )
        assert core <= 1_560

    def test_constants_and_types_have_one_home(self) -> None:
        defined = Counter(
            target.id
            for tree in TREES.values()
            for node in tree.body
            if isinstance(node, (ast.Assign, ast.AnnAssign))
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        )
        for name in ("Floats", "Blocks", "Words", "Weights", "Integers", "_SLACK", "LEAST_EPSILON"):
            assert defined[name] <= 1, name


class TestSurface:
    def test_all_is_pinned(self) -> None:
        assert dp_sips.__all__ == [
            "Audit",
            "Budget",
            "Comparison",
            "Counts",
            "CsvFiles",
            "Cumulative",
            "DiskFullError",
            "DpSipsError",
            "Dpsu",
            "FlatRule",
            "Guarantee",
            "Gw",
            "InputError",
            "Ledger",
            "Mad",
            "Mad2R",
            "Matching",
            "MemoryEngine",
            "OutOfMemoryError",
            "OutputError",
            "Plan",
            "PolicyLaplace",
            "Selection",
            "Single",
            "Sips",
            "SipsRule",
            "UnwiseWarning",
            "UsageError",
            "WeightedGaussian",
            "audit",
            "compare",
            "count_users",
            "plan",
            "select_partitions",
            "text",
            "write_tokens",
        ]

    def test_all_is_there(self) -> None:
        for name in dp_sips.__all__:
            assert getattr(dp_sips, name).__doc__
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            _ = dp_sips.nothing

    def test_is_typed(self) -> None:
        assert (ROOT / "py.typed").exists()

    @pytest.mark.parametrize("name", MECHANISMS)
    def test_mechanisms_state_their_guarantee(self, name: str) -> None:
        assert "Guarantee: " in (inspect.getdoc(inspect.getmodule(MECHANISMS[name])) or "")

    def test_what_touches_privacy_states_its_guarantee(self) -> None:
        for path, tree in TREES.items():
            if part(path) == "privacy" and path not in {
                "privacy/__init__.py", "privacy/search.py", "privacy/guarantee.py",
                "privacy/arrays.py", "privacy/contributions.py",
            }:  # fmt: skip
                words = " ".join(
                    ast.get_docstring(node) or ""
                    for node in ast.walk(tree)
                    if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef))
                )
                assert "Guarantee:" in words, path


class TestHouse:
    def test_files_are_short(self) -> None:
        for path in (*FILES, *ROOT.rglob("*.pyx")):
            assert len(path.read_text("utf-8").splitlines()) <= 500, path

    @pytest.mark.parametrize("path", [path for path in TREES if part(path) != "cli"])
    def test_the_library_is_silent(self, path: str) -> None:
        """No printing, and logging in one place: nothing about the data can slip out that way."""
        calls = {
            node.func.id
            for node in ast.walk(TREES[path])
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not calls & {"print", "input", "breakpoint", "eval", "exec"}
        tops = {name.split(".")[0] for name in imported(TREES[path])}
        # Warnings are about parameters, in one place.
        allowed = {"warnings"} if path == "unwise.py" else set()
        assert not tops & {"warnings", "pdb", "pickle"} - allowed

    def test_logging_has_one_home(self) -> None:
        users = {path for path, tree in TREES.items() if "logging" in imported(tree)}
        assert users == {"progress.py", "cli/general.py"}
