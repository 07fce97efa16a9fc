"""The playground in a real browser: what a person does with it, and what it must never do."""

import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest

pytestmark = pytest.mark.xdist_group("browser")
SMALL = "claim=cao2022_phase&data.n=40&steps=200"  # of the size that the server has compiled by then
OTHER = "kou2023_phase"
DONE = """() => {
    const [charts, live] = [document.querySelector('#charts'), document.querySelector('#live')];
    return charts.children.length && !live.classList.contains('running') && !charts.classList.contains('stale');
}"""
ENDS = "() => document.querySelector('[data-group=losses]').getAttribute('aria-label')"
CURVE = "g[clip-path] path[stroke-width='2']"  # of a chart, not of its legend
LINE = f"""() => document.querySelector("[data-group=losses] {CURVE}").getAttribute('d')"""
OTHER_CELL = """() => {
    const middle = (box) => [box.x + box.width / 2, box.y + box.height / 2];
    const all = (what) => [...document.querySelectorAll(`#diagram ${what}`)];
    const boxes = (what) => all(what).map((one) => one.getBoundingClientRect());
    const [x, y] = middle(boxes('circle').at(-1));
    const column = boxes('rect[shape-rendering]').filter((box) => box.left < x && x < box.right);
    const other = column.find((box) => y < box.top || box.bottom < y);
    return other && middle(other);
}"""  # where to click: in the column of the ring, once a cell of it is there


def trained(page):
    """Waits for the curves of the page's setting, and says how they end."""
    page.wait_for_function(DONE)
    return page.evaluate(ENDS)


def typed(page, key):
    return page.locator(f"input.typed[data-key='{key}']").input_value()


def sent(page):
    """The messages the page sends from now on, as they are sent."""
    messages = []
    page.on("websocket", lambda line: line.on("framesent", lambda frame: messages.append(json.loads(frame))))
    return messages


def link(page):
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).fragment).items()}


def beyond(page, width):
    """What reaches beyond a screen of this width."""
    return page.evaluate(
        """(width) => [document.documentElement, ...document.querySelectorAll('input, button, select, svg, .card')]
            .filter((one) => one.getBoundingClientRect().right > width + 1 || one === document.documentElement
                && one.scrollWidth > width)
            .map((one) => `${one.tagName} ${one.id}`)""",
        width,
    )


def drag(page, key, parts):
    """Drags a slider through these parts of its length."""
    box = page.locator(f"input.range[data-key='{key}']").bounding_box()
    height = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * parts[0], height)
    page.mouse.down()
    for part in parts[1:]:
        page.mouse.move(box["x"] + box["width"] * part, height)
        page.wait_for_timeout(20)
    page.mouse.up()


def test_loads_with_a_theorem_its_side_and_its_curves(visit, server):
    page = visit(f"{server.url}#{SMALL}")
    trained(page)
    assert "featlab" in page.title()
    assert page.locator("#statement math").count() >= 1
    assert page.locator("#sentence").inner_text().strip()
    assert re.search(r"= \S*\d", page.locator("#number").inner_text())
    assert page.locator("#charts .chart").count() >= 2
    assert page.locator("#assumptions li").count() >= 1
    assert page.locator("#problem").inner_text() == ""
    assert visit.requests and all(urlsplit(url).hostname in ("127.0.0.1", None) for url in visit.requests)


@pytest.mark.slow
def test_dragging_moves_the_curves_and_asks_ten_times_a_second(visit, server):
    page = visit("about:blank")
    messages = sent(page)
    page.goto(f"{server.url}#{SMALL}")
    before, sentence = trained(page), page.locator("#sentence").inner_text()
    first = len(messages)
    page.evaluate(f"""() => {{
        const line = {LINE};
        window.seen = new Set();
        window.watching = setInterval(() => window.seen.add(line()), 20);
    }}""")
    start = page.evaluate("performance.now()")
    drag(page, "data.snr", [0.3 + 0.65 * i / 40 for i in range(41)])
    seconds = (page.evaluate("performance.now()") - start) / 1000
    after = trained(page)
    page.evaluate("clearInterval(window.watching)")
    asked = [message for message in messages[first:] if message["do"] == "train"]
    assert 3 <= len(asked) <= 10 * seconds + 3
    assert asked[-1]["setting"]["data.snr"] == pytest.approx(float(typed(page, "data.snr")))
    assert [message["job"] for message in asked] == sorted({message["job"] for message in asked})
    assert page.evaluate("window.seen.size") >= 3
    assert after != before
    assert page.locator("#sentence").inner_text() != sentence
    assert float(link(page)["data.snr"]) == pytest.approx(float(typed(page, "data.snr")))


@pytest.mark.slow
def test_the_link_restores_the_setting_in_a_new_tab(visit, server):
    context = visit.context()
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = visit(f"{server.url}#{SMALL}", context)
    page.locator("input.typed[data-key='data.snr']").fill("0.37")
    page.locator("input.typed[data-key='data.snr']").press("Enter")
    ends = trained(page)
    assert link(page)["data.snr"] == "0.37"
    page.click("#share")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.url
    other = visit(copied, context)
    assert trained(other) == ends
    assert typed(other, "data.snr") == "0.37" and typed(other, "data.n") == "40"
    assert other.url == page.url


@pytest.mark.slow
def test_two_tabs_train_at_once_each_its_own(visit, server):
    low = visit(f"{server.url}#{SMALL}&data.snr=0.05")
    high = visit(f"{server.url}#{SMALL}&data.snr=1.5")
    ends = trained(low), trained(high)
    assert ends[0] != ends[1]
    assert low.locator("#number").inner_text() != high.locator("#number").inner_text()


@pytest.mark.slow
def test_a_click_in_the_phase_diagram_moves_the_sliders(visit, server):
    page = visit(f"{server.url}#{SMALL}")
    page.wait_for_selector("#diagram svg")
    before = typed(page, "data.snr"), typed(page, "data.n")
    x, y = page.wait_for_function(OTHER_CELL).json_value()
    page.mouse.click(x, y)
    there = typed(page, "data.snr"), typed(page, "data.n")
    assert there != before
    assert float(link(page)["data.n"]) == pytest.approx(float(there[1]))
    page.locator("#diagram").focus()
    page.keyboard.press("ArrowUp")
    assert (typed(page, "data.snr"), typed(page, "data.n")) != there
    page.keyboard.press("ArrowDown")
    assert (typed(page, "data.snr"), typed(page, "data.n")) == there
    assert page.locator("#diagram").get_attribute("aria-label")


@pytest.mark.slow
def test_cells_stay_when_a_message_brings_none(visit, server):
    visit.expected = ("404",)  # a script that is opened as a page has no icon
    page = visit(f"{server.url}static/charts.js")
    page.evaluate("""() => {
        document.body.replaceChildren(...['div', 'p'].map((tag) => document.createElement(tag)));
        [document.body.children[0].id, document.body.children[1].id] = ['diagram', 'phase-progress'];
    }""")
    for name in ("charts.js", "heat.js"):
        page.add_script_tag(url=f"{server.url}static/{name}")
    drawn = page.evaluate("""async () => {
        const { diagramPanel } = await import('/static/panels.js'), panel = diagramPanel(() => {});
        const axis = { field: 'data.n', label: 'n', values: [1, 2, 4] };
        const head = { job: 1, x: axis, y: axis, label: 'error', low: 0, high: 0.5, curve: null, done: false };
        const frame = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
        const cells = () => document.querySelectorAll('#diagram rect[shape-rendering]').length, counts = [];
        for (const cells of [[], [[0, 0, 0.1], [2, 1, 0.2]], [[1, 1, null]], []]) panel.take({ ...head, cells });
        await frame();
        counts.push(cells(), document.querySelector('#phase-progress').textContent);
        panel.take({ ...head, cells: [], done: true });
        await frame();
        return [...counts, cells(), document.querySelector('#phase-progress').textContent];
    }""")
    assert drawn == [2, "2 of 9 cells", 2, ""]


def test_the_keyboard_alone_is_enough(visit, server):
    page = visit(f"{server.url}#{SMALL}")
    page.wait_for_selector("input.range")
    slider = page.locator("input.range[data-key='data.snr']")
    slider.focus()
    before = float(typed(page, "data.snr"))
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert float(typed(page, "data.snr")) > before
    assert slider.get_attribute("aria-valuetext") == typed(page, "data.snr")
    assert slider.get_attribute("aria-label")
    unnamed = page.evaluate("""() => [...document.querySelectorAll('input, select, button')].filter((one) =>
        !one.getAttribute('aria-label') && !(one.labels || []).length && !one.textContent.trim()).length""")
    assert unnamed == 0


@pytest.mark.slow
def test_bad_input_is_answered_beside_the_settings(visit, server):
    visit.expected = ("400", "422")  # the download that is refused
    page = visit(f"{server.url}#{SMALL}")
    trained(page)
    page.locator("input.typed[data-key='data.n']").fill("-5")
    page.locator("input.typed[data-key='data.n']").press("Enter")
    page.wait_for_function("() => document.querySelector('#problem').textContent.trim() !== ''")
    said = page.locator("#problem").inner_text()
    assert "Traceback" not in said and len(said) < 300
    page.click("[data-file='experiment.toml']")
    page.wait_for_function("() => !/Preparing|^$/.test(document.querySelector('#download-note').textContent)")
    assert "saved" not in page.locator("#download-note").inner_text()
    page.click("#reset")
    page.wait_for_function("() => document.querySelector('#problem').textContent === ''")
    with page.expect_download() as taken:
        page.click("[data-file='experiment.toml']")
    assert taken.value.suggested_filename == "experiment.toml"


def test_a_phone_needs_no_sideways_scrolling(visit, server):
    page = visit(f"{server.url}#{SMALL}", viewport={"width": 360, "height": 740})
    trained(page)
    assert beyond(page, 360) == []
    page.click("#more-details summary")
    assert beyond(page, 360) == []


def test_dark_colours_follow_the_system_and_the_button(visit, server):
    def lightness(page):
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in re.findall(r"\d+", colour)[:3]) / 3

    context = visit.context(color_scheme="dark")
    page = visit(f"{server.url}#{SMALL}", context)
    page.wait_for_selector("input.range")
    assert lightness(page) < 60
    page.click("#theme")
    assert lightness(page) > 200
    page.reload()
    page.wait_for_selector("input.range")
    assert lightness(page) > 200


@pytest.mark.slow
def test_every_theorem_has_an_answer(visit, server):
    page = visit(f"{server.url}#{SMALL}")
    page.wait_for_selector("input.range")
    answers = page.evaluate("""async () => {
        const { claims } = await (await fetch('api/catalogue')).json();
        const line = new WebSocket(location.origin.replace('http', 'ws') + '/ws'), answers = {};
        await new Promise((resolve) => { line.onopen = resolve; });
        const all = new Promise((resolve) => {
            line.onmessage = (event) => {
                const message = JSON.parse(event.data);
                answers[claims[message.job].id] = [message.kind, message.sentence || message.text];
                if (Object.keys(answers).length === claims.length) resolve();
            };
            setTimeout(resolve, 20000);
        });
        claims.forEach(({ setting }, job) => line.send(JSON.stringify({ do: 'side', job, setting })));
        await all;
        return claims.map(({ id }) => [id, ...(answers[id] || ['nothing', ''])]);
    }""")
    assert [one for one in answers if one[1] != "side" or not one[2]] == []


@pytest.mark.slow
def test_a_killed_server_comes_back_and_so_does_the_page(visit, server):
    visit.expected = visit.while_dead
    page = visit("about:blank")
    messages = sent(page)
    page.goto(f"{server.url}#{SMALL}")
    before = trained(page)
    try:
        server.kill()
        page.wait_for_function("() => document.querySelector('#connection').textContent.includes('reconnecting')")
        page.locator("input.typed[data-key='data.snr']").fill("1.2")
        page.locator("input.typed[data-key='data.snr']").press("Enter")
        del messages[:]
    finally:
        server.start()
    page.wait_for_function("() => document.querySelector('#connection').textContent === ''")
    after = trained(page)
    assert after != before
    assert messages[0]["do"] == "train" and messages[0]["setting"]["data.snr"] == 1.2


@pytest.mark.slow
def test_switching_the_theorem_changes_everything(visit, server):
    page = visit(f"{server.url}#{SMALL}")
    trained(page)
    title, statement = page.locator("#title").inner_text(), page.locator("#statement").inner_html()
    page.select_option("#claim", OTHER)
    assert page.locator("#title").inner_text() != title
    assert page.locator("#statement").inner_html() != statement
    assert link(page) == {"claim": OTHER}
    page.wait_for_function("() => document.querySelector('#sentence').textContent.trim() !== ''")


@pytest.mark.slow
def test_a_task_of_ones_own_begins_with_the_theorems_and_is_in_the_link(visit, server):
    page = visit(f"{server.url}#{SMALL}", viewport={"width": 360, "height": 740})
    page.wait_for_selector("input.range")
    page.select_option("#claim", "")
    assert page.locator("#parts select").count() == 4
    assert typed(page, "data.n") == "40"
    page.select_option("#parts select[data-key='algorithm']", "SAM")
    page.wait_for_selector("input.range[data-key='algorithm.radius']", state="attached")
    assert link(page)["algorithm"] == "SAM" and link(page)["data.n"] == "40"
    assert "algorithm.pace" not in link(page)
    page.click("#more-details summary")
    assert beyond(page, 360) == []
    other = visit(page.url)
    other.wait_for_selector("input.range[data-key='algorithm.radius']", state="attached")
    assert other.url == page.url


@pytest.mark.slow
def test_the_slider_of_an_atlas_moves_its_curves_from_disk(visit, atlas_page):
    page = visit(atlas_page)
    slider, curves = page.locator(".slice input[type=range]"), page.locator(".slice .curves").first
    page.evaluate("() => { for (const one of document.querySelectorAll('details')) one.open = true; }")
    page.evaluate("() => document.querySelector('.slice').scrollIntoView()")
    slider.wait_for()
    slider.focus()
    seen = []
    for key in ("Home", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
        drawn = curves.locator(CURVE).first.get_attribute("d")
        seen.append((page.locator(".slice .side").inner_text(), curves.get_attribute("aria-label"), drawn))
    assert [side for side, _, _ in seen] == ["Slow.", "Slow.", "Fast."]
    assert len({label for _, label, _ in seen}) == 3 and len({drawn for _, _, drawn in seen}) == 3
    assert {urlsplit(url).scheme for url in visit.requests} <= {"file", "data"}
