"""The pages of the site: written from the package, complete, with links that lead somewhere, and examples that run."""

import html
import re
import shutil
import subprocess
import sys
import threading
import time
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from bmrm.losses import LOSSES
from bmrm.regularizers import REGULARIZERS
from bmrm.solvers import SOLVERS
from tests.browser import browse, wants_browser
from tests.pages import ROOT, blocks_of

pytest.importorskip("griffe")
pytest.importorskip("latex2mathml")

from pages.formulas import typeset
from pages.plain_formulas import typeset_plain
from pages.reference import described
from pages.search import write_search
from pages.write import write_pages, written

NAV = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All pages as the builder gets them."""
    out = tmp_path_factory.mktemp("pages") / "docs"
    list(write_pages(out))
    return out


def files_of(entries):
    for entry in entries:
        for where in entry.values():
            yield from files_of(where) if isinstance(where, list) else [where]


def test_the_menu_has_every_page_once(folder):
    listed = list(files_of(NAV))
    assert sorted(listed) == sorted(str(path.relative_to(folder)) for path in folder.rglob("*.md"))
    titles = [title for entry in NAV for title in entry]
    assert len(set(titles)) == len(titles)


def test_nothing_is_left_to_fill_in(folder):
    for path in folder.rglob("*.md"):
        text = path.read_text()
        assert not re.search(r"^(--8<--|:::|<!-- (table|figures):)", text, re.MULTILINE), path
        assert "object at 0x" not in text, path


def test_a_marker_that_names_nothing_is_an_error():
    with pytest.raises(KeyError):
        written("<!-- table: tabels -->\n")
    with pytest.raises(FileNotFoundError):
        written('--8<-- "no/such/file.py"\n')
    with pytest.raises(AttributeError):
        written("::: bmrm.app.fit.fitt\n")
    assert written("`<!-- table: tabels -->`\n") == "`<!-- table: tabels -->`\n"


def test_the_reference_has_every_plug_in_and_every_public_name(folder):
    import bmrm
    from bmrm import extend

    text = "".join(path.read_text() for path in folder.rglob("*.md"))
    for registry in (LOSSES, REGULARIZERS, SOLVERS):
        for entry in registry.all():
            assert f"### {entry.name}: `" in text
    told = {"BmrmError", "__version__"}
    assert {
        name for name in bmrm.__all__ if f"### `bmrm.{name}` {{" not in text and f": `bmrm.{name}` {{" not in text
    } == told
    for name in (*bmrm.__all__, *(f"extend.{name}" for name in extend.__all__)):
        assert name.replace("_", "&#95;") in text


def test_an_entry_says_what_the_docstring_says():
    text = described("bmrm.app.fit.minimize")
    assert text.startswith("### `bmrm.minimize` { #bmrm.app.fit.minimize }")
    assert "    callback=None,\n) -> Solution" in text
    assert "- <code>callback</code> (<code>Callback &#124; None</code>): called with the `Iteration` after each" in text
    assert (
        "**Raises**\n\n- <code>InputError</code>: Wrong names or options.\n- <code>IncompatibleError</code>: The"
        in text
    )
    assert "- <code>InputError</code>: lambda is not positive" in described("bmrm.regularizers.l1.L1")
    status = described("bmrm.problem.Status")
    assert "<code>CONVERGED</code>: the gap is within the tolerance" in status


def test_formulas_become_mathml_and_code_stays():
    assert typeset("costs 5$ and $6") == "costs 5$ and $6"
    kept = "`$x$`\n\n    $ bmrm train\n\n```console\n$ a $ b\n```\n"
    assert typeset(kept) == kept
    text = typeset("$x$ is\n\n$$\\frac{1}{2} \\lVert w \\rVert_2^2$$\n")
    assert "<mfrac>" in text
    assert text.count("<math") == 2
    assert "$" not in text
    assert "\n\n<div" in text, "a formula of its own begins a block"
    assert text.startswith("<span"), "another element would end the paragraph there"


def test_a_formula_with_an_unknown_command_is_refused():
    with pytest.raises(ValueError, match=r"\\arg is not known"):
        typeset(r"$\arg\min_w x$")


@pytest.mark.parametrize(
    ("plain", "shown"),
    [
        ("max(0, 1 - y f)", "max(0,1−yf)"),
        ("exp(-y f)", "exp(−yf)"),
        ("1/2 r^2 for |r| <= delta, else 0", "12r2 for |r|≤δ, else 0"),
        ("max_k (cost(y, k) + f_k - f_y)", "maxk(cost(y,k)+fk−fy)"),
        ("max over y' of 1 - F_beta(y')", "max over y′ of 1−Fβ(y′)"),
        ("mean over pairs of a query, y_i > y_j", "mean over pairs of a query, yi>yj"),
        ("1/2 (f - y)' M (f - y)", "12(f−y)⊤M(f−y)"),
    ],
)
def test_formulas_of_losses_are_typeset_with_words_between(plain, shown):
    text = html.unescape(re.sub(r"<[^>]*>", "", typeset_plain(plain)))
    assert text.replace("\u2009", "").replace("\u2223", "|").replace("\u007c", "|") == shown


class Links(HTMLParser):
    """The targets and the anchors of a page, and the text of its tables."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors, self.loaded = [], set(), []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in ("script", "img", "iframe") or (tag == "link" and given.get("rel") == "stylesheet"):
            self.loaded += [given[name] for name in ("src", "href") if given.get(name)]


@pytest.fixture(scope="module")
def site(folder, tmp_path_factory):
    """The built site."""
    pytest.importorskip("zensical")
    place = tmp_path_factory.mktemp("site")
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text()) | {"docs_dir": "docs", "site_dir": "site"}
    (place / "mkdocs.yml").write_text(yaml.safe_dump(config))
    shutil.copytree(folder, place / "docs")
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return place / "site"


@pytest.mark.nightly
def test_the_site_builds_strictly_and_its_links_lead_somewhere(site):
    pages = {path: Links(path) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(pages) == len(list(files_of(NAV)))
    for path, page in pages.items():
        for link in page.links:
            where, _, anchor = link.partition("#")
            if re.match(r"https?:|mailto:", where):
                continue
            target = (path.parent / where).resolve() if where else path
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), (path, link)
            if anchor and target in pages and not anchor.startswith("__"):
                assert anchor in pages[target].anchors, (path, link)


@pytest.mark.nightly
def test_the_site_loads_nothing_from_elsewhere(site):
    for path in site.rglob("*.html"):
        assert not [one for one in Links(path).loaded if re.match(r"(https?:)?//", one)], path


@pytest.mark.nightly
def test_no_page_shows_markdown(site):
    for path in site.rglob("*.html"):
        text = re.sub(r"<(pre|code|script|math)\b.*?</\1>", "", path.read_text(), flags=re.DOTALL)
        text = re.sub(r"<[^>]*>", "", text)
        assert "`" not in text, (path, text[max(0, text.index("`") - 60) : text.index("`") + 60])
        assert "**" not in text, path


@wants_browser
@pytest.mark.nightly
@pytest.mark.parametrize("page", ["index.html", "losses.html", "decisions/the-site.html"])
def test_a_browser_draws_pages_and_complains_of_nothing(page, site, tmp_path):
    for width, scheme in ((1400, 1), (500, 0)):
        options = [f"--window-size={width},900", f"--blink-settings=preferredColorScheme={scheme}"]
        browse(f"file://{site}/{page}", tmp_path / "profile", *options, f"--screenshot={tmp_path}/a.png")
        assert (tmp_path / "a.png").stat().st_size > 10_000


SEARCH = """
<script>
const all = (root) => [...root.querySelectorAll("*")].flatMap((o) => [o, ...(o.shadowRoot ? all(o.shadowRoot) : [])]);
const wait = async () => { for (let k = 0; k < 8; k++) { await fetch("/wait").catch(() => 0); await later(500); } };
const later = (time) => new Promise((resolve) => setTimeout(resolve, time));
(async () => {
  await later(1000);
  document.querySelector("label[for=__search]").click();
  await later(1000);
  const input = all(document).find((o) => o.tagName === "INPUT" && o.type === "text");
  input.value = "quantile";
  input.dispatchEvent(new Event("input", { bubbles: true }));
  if (location.protocol !== "file:") await wait();
  await later(2000);
  const links = all(document).filter((o) => o.tagName === "A" && o.href.includes("h=quantile"));
  document.body.append(Object.assign(document.createElement("pre"), { id: "found", textContent: links.join(" ") }));
})();
</script>
"""


class Served(SimpleHTTPRequestHandler):
    """Serves a folder; `/wait` takes a quarter of a second, in which the clock of the page stands still."""

    def do_GET(self):
        if self.path != "/wait":
            return super().do_GET()
        time.sleep(0.25)
        self.send_response(204)
        return self.end_headers()

    def log_message(self, *_):
        pass


@wants_browser
@pytest.mark.nightly
@pytest.mark.parametrize("way", ["file", "http"])
def test_the_search_finds(way, site, tmp_path):
    write_search(site)
    page = site / f"search-{way}.html"
    page.write_text((site / "index.html").read_text().replace("</body>", f"{SEARCH}</body>"))
    try:
        with ThreadingHTTPServer(("127.0.0.1", 0), partial(Served, directory=str(site))) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            root = f"file://{site}" if way == "file" else f"http://127.0.0.1:{server.server_port}"
            text = browse(f"{root}/{page.name}", tmp_path, "--virtual-time-budget=20000", "--dump-dom")
            server.shutdown()
    finally:
        page.unlink()
    links = html.unescape(re.search(r'<pre id="found">(.*?)</pre>', text)[1]).split()
    assert f"{root}/plug-ins.html?h=quantile#bmrm.losses.quantile.Quantile" in links
    assert all(link.startswith(root) for link in links)


def test_examples_of_the_formats_are_read(tmp_path):
    from bmrm.data.reading import read

    for block in blocks_of("docs/data-formats.md"):
        if block.title is not None:
            (tmp_path / block.title).write_text(block.text)
    assert read(tmp_path / "a.svm").features == 3
    data = read(tmp_path / "a.csv")
    assert data.feature_names == ("age", "income", "city_size")
    assert data.targets.y.tolist() == ["yes", "no"]
