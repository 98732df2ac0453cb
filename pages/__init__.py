"""Write the pages of the site before it is built: tables, figures, formulas and the reference come from the package.

`python -m pages` reads `docs/` and writes `build/docs/`, plain Markdown and HTML that any builder takes without hooks.
"""
