"""What a user sees and clicks on the pages that commands write."""


def test_the_browser_opens_a_file_and_runs_its_script(browser, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("<!doctype html><title>before</title><script>document.title = 'after'</script>")
    browser.get(page.as_uri())
    assert browser.title == "after"
