"""The page in a browser: what it runs, asks for and shows, not what it says."""

import json
import shutil
import time
from contextlib import contextmanager

import pytest
from drawn_reports import hostile_report, many_ranks, report_of
from html_pages import comparison_page, hostile_comparison, hostile_sweep, sweep_page

from analyzer.render.formats.html import render

BROWSER, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (BROWSER and DRIVER), reason="no chromium and chromedriver; apt-get install chromium chromium-driver"
    ),
]
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PAGES = {
    "compare": (
        comparison_page,
        {"chart-steps": 10, "chart-difference-0": 6, "chart-difference-1": 4, "chart-difference-2": 4},
    ),
    "sweep": (sweep_page, {"chart-curve-0": 4, "chart-terms-0": 16}),
}
"""What makes a page → the points of each chart."""
WINDOW = (1280, 900)
PHONE = (390, 844)
OPENS_MS = 3_000


@pytest.fixture
def opened(tmp_path):
    """Opens a report, or the text of a page: `with opened(report) as driver`."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    @contextmanager
    def open_page(report):
        page = tmp_path / "report.html"
        page.write_text(report if isinstance(report, str) else render(report), encoding="utf-8")
        options = webdriver.ChromeOptions()
        options.binary_location = BROWSER
        for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={WINDOW[0]},{WINDOW[1]}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        try:
            driver.get("about:blank")
            driver.get_log("performance")
            driver.get(page.as_uri())
            yield driver
        finally:
            driver.quit()

    return open_page


def _asked_for(driver):
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [sent["params"]["request"]["url"] for sent in messages if sent["method"] == "Network.requestWillBeSent"]


def _draw_all(driver):
    """Scroll to each chart and wait until it is there; gives how many bars each has."""
    places = driver.find_elements("class name", "chart")
    counts = {}
    for place in places:
        driver.execute_script("arguments[0].scrollIntoView()", place)
        deadline = time.monotonic() + 20
        while not (bars := place.find_elements("css selector", ".point")) and time.monotonic() < deadline:
            time.sleep(0.05)
        counts[place.get_attribute("id")] = len(bars)
    return counts


def _column(driver, table, at):
    return driver.execute_script(
        f"return [...document.querySelectorAll('#{table} tbody tr:not([hidden])')].map(row => row.cells[{at}].textContent)"
    )


def test_the_page_runs_without_an_error_and_asks_for_nothing(opened):
    with opened(report_of("tp")) as driver:
        charts = _draw_all(driver)
        assert driver.get_log("browser") == []
        assert [place.rpartition("/")[2] for place in _asked_for(driver)] == ["report.html"]
        assert charts == {"chart-ranks": 2 * len(_series(driver)), "chart-steps": 4, "chart-ladder": 1}


def _series(driver):
    return driver.execute_script("return JSON.parse(document.getElementById('data').textContent).ranks.series")


def test_a_table_is_sorted_by_a_click_and_back_by_another(opened):
    with opened(report_of("tp")) as driver:
        heading = driver.find_element("css selector", "#ranks th:nth-child(3) button")
        driver.execute_script("arguments[0].scrollIntoView()", heading)
        assert _column(driver, "ranks", 0) == ["0", "1"]
        driver.execute_script("arguments[0].click(); arguments[0].click()", heading)
        assert _column(driver, "ranks", 0) == ["1", "0"]
        assert heading.find_element("xpath", "..").get_attribute("aria-sort") == "ascending"


def test_a_table_is_filtered_by_what_is_typed(opened):
    with opened(report_of("tp")) as driver:
        driver.find_element("css selector", "input[data-table=rules]").send_keys("unknown prefill")
        assert _column(driver, "rules", 0) == ["Q502 prefill-without-reuse"]


def test_the_theme_follows_the_reader_and_its_button(opened):
    def page_color():
        return driver.execute_script("return getComputedStyle(document.body).backgroundColor")

    with opened(report_of("tp")) as driver:
        driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
        )
        assert page_color() == "rgb(20, 23, 26)"
        driver.find_element("id", "theme").click()
        assert page_color() == "rgb(255, 255, 255)"


def test_a_hostile_name_is_inert(opened):
    with opened(hostile_report()) as driver:
        driver.execute_script("window.alert = () => { window.ran = true; }")
        _draw_all(driver)
        assert driver.execute_script("return window.ran") is None
        assert driver.find_elements("tag name", "img") == []
        assert driver.get_log("browser") == []
        assert [place.rpartition("/")[2] for place in _asked_for(driver)] == ["report.html"]


def test_a_script_that_got_into_the_page_would_not_run(opened):
    with opened(report_of("tp")) as driver:
        driver.execute_script(
            "const one = document.createElement('div'); one.innerHTML = '<img src=x onerror=\"window.ran = true\">';"
            "document.body.append(one); const two = document.createElement('script');"
            "two.textContent = 'window.ran = true'; document.body.append(two);"
        )
        time.sleep(0.5)
        assert driver.execute_script("return window.ran") is None


def test_a_phone_shows_the_page_without_scrolling_sideways(opened):
    with opened(many_ranks(64, 20)) as driver:
        screen = {"width": PHONE[0], "height": PHONE[1], "deviceScaleFactor": 2, "mobile": True}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        driver.refresh()
        _draw_all(driver)
        assert driver.execute_script("return document.documentElement.scrollWidth") == PHONE[0]


def test_on_paper_every_finding_is_open_and_every_chart_drawn(opened):
    with opened(report_of("tp")) as driver:
        driver.execute_script("dispatchEvent(new Event('beforeprint'))")
        assert driver.find_elements("css selector", "details:not([open])") == []
        assert len(driver.find_elements("css selector", ".chart .main-svg")) >= 3
        driver.execute_script("dispatchEvent(new Event('afterprint'))")
        assert driver.find_elements("css selector", "details:not([open])") != []


def test_a_run_of_sixty_four_ranks_opens_in_three_seconds(opened):
    with opened(many_ranks(64, 20)) as driver:
        took = []
        for _ in range(3):
            driver.refresh()
            took.append(
                driver.execute_script("return performance.timing.loadEventEnd - performance.timing.navigationStart")
            )
        assert min(took) < OPENS_MS
        assert _draw_all(driver)["chart-ranks"] == 64 * len(_series(driver))


@pytest.mark.parametrize("page", PAGES)
def test_a_comparison_and_a_sweep_draw_their_charts_and_ask_for_nothing(opened, page):
    make, charts = PAGES[page]
    with opened(make()) as driver:
        assert _draw_all(driver) == charts
        assert driver.get_log("browser") == []
        assert [place.rpartition("/")[2] for place in _asked_for(driver)] == ["report.html"]
        screen = {"width": PHONE[0], "height": PHONE[1], "deviceScaleFactor": 2, "mobile": True}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= PHONE[0]


def test_a_table_of_a_sweep_is_sorted_by_a_click(opened):
    with opened(sweep_page()) as driver:
        heading = driver.find_element("css selector", "#degrees-0 th:nth-child(2) button")
        driver.execute_script("arguments[0].scrollIntoView(); arguments[0].click()", heading)
        assert _column(driver, "degrees-0", 0) == ["1", "8", "2", "4"]


@pytest.mark.parametrize("make", [hostile_comparison, hostile_sweep])
def test_a_hostile_name_is_inert_in_every_page(opened, make):
    with opened(make()) as driver:
        driver.execute_script("window.alert = () => { window.ran = true; }")
        _draw_all(driver)
        assert driver.execute_script("return window.ran") is None
        assert driver.find_elements("tag name", "img") == []
        assert driver.get_log("browser") == []
