"""Everything that becomes HTML: templates, style sheets and views over plain data.

A page is one file. It fetches nothing, opens from disk, and its Content-Security-Policy allows exactly the script and
the style sheet that it contains.

- `shell`: the frame of every page (jinja2 templates with automatic escaping).
- `modules`: joins the ES modules of views (`views/*.js`) into one inline script; a server can serve the same files.
- `panels`: pages made of views with their data: inspection pages and reports.
- `compare_page`, `judge_page`, `tree_page`: the pages of `regard compare`, `regard judge` and `--show-search`.
- `notebook`: how results show themselves in a notebook.
- `packed_numbers`: tensors as text, for pages with many numbers.
"""
