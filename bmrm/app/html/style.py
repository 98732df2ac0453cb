"""The style sheet: light and dark, wide and narrow, printed.

Colours are variables. The six of lines differ in lightness too, so that they are told apart without their hue; lines
of a second kind are dashed.
"""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #ffffff; --raised: #f5f6f8; --ink: #1a1d21; --faint: #5b636e; --rule: #d9dde3; --grid: #e9ecf0;
  --s0: #0072b2; --s1: #c4500a; --s2: #00805e; --s3: #9a3e8c; --s4: #7a6200; --s5: #4a4f57;
  --good: #00704f; --warn: #a34000; --heat: 0 114 178;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171b; --raised: #1d2127; --ink: #e6e9ed; --faint: #a3acb8; --rule: #363d47; --grid: #262c34;
    --s0: #5ab4f0; --s1: #f59a55; --s2: #3fcaa2; --s3: #e190d3; --s4: #d9c350; --s5: #c3c9d1;
    --good: #4fd0a8; --warn: #f7a765; --heat: 90 180 240;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 70rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.25rem 0 .6rem; padding-top: .6rem; border-top: 1px solid var(--rule); }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
p { margin: .4rem 0; max-width: 46rem; }
.faint, figcaption, caption, .none { color: var(--faint); }
details.run { margin: 1.5rem 0 0; border-top: 2px solid var(--rule); padding-top: .6rem; }
details.run > summary { font-size: 1.3rem; font-weight: 600; color: var(--ink); overflow-wrap: anywhere; }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1rem; list-style: none; padding: 0; margin: .8rem 0 0; }
a { color: var(--s0); }
.status { display: inline-block; font-weight: 600; padding: 0 .5rem; border: 1.5px solid; border-radius: .3rem; }
.status.good { color: var(--good); } .status.warn { color: var(--warn); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .6rem; margin: 1rem 0; }
.tile { background: var(--raised); border-radius: .4rem; padding: .5rem .75rem; }
.tile .what { display: block; color: var(--faint); font-size: .85rem; }
.tile .much { font-size: 1.25rem; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem 1.5rem; }
figure { margin: 0; min-width: 0; max-width: 36rem; break-inside: avoid; }
figure > svg { display: block; width: 100%; height: auto; }
figcaption { font-weight: 600; font-size: .95rem; margin-bottom: .2rem; }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1rem; font-size: .85rem; }
.key { display: inline-flex; align-items: center; gap: .35rem; overflow-wrap: anywhere; }
.key svg { width: 26px; height: 10px; flex: none; }
svg text { fill: var(--ink); font-size: 12px; } svg text.tick { fill: var(--faint); font-size: 11.5px; }
svg .middle { text-anchor: middle; } svg .end { text-anchor: end; }
svg .grid { stroke: var(--grid); } svg .axis { stroke: var(--rule); fill: none; }
svg .level { stroke: var(--faint); stroke-dasharray: 3 3; }
svg .line { fill: none; stroke: var(--c); stroke-width: 2; stroke-linejoin: round; }
svg .dashed { stroke-dasharray: 6 3; } svg .again1 .line { stroke-dasharray: 2 3; }
svg circle { fill: var(--c); }
.s0 { --c: var(--s0); } .s1 { --c: var(--s1); } .s2 { --c: var(--s2); }
.s3 { --c: var(--s3); } .s4 { --c: var(--s4); } .s5 { --c: var(--s5); }
.scroll { overflow-x: auto; margin: .5rem 0; } .scroll table + table { margin-top: .8rem; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .3rem; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; vertical-align: top; border-bottom: 1px solid var(--grid); }
thead th { color: var(--faint); font-weight: 600; border-bottom-color: var(--rule); }
tbody th { font-weight: 500; } td.number, th.number { text-align: right; white-space: nowrap; }
th, td { overflow-wrap: anywhere; } table code, .number, table .status { overflow-wrap: normal; white-space: nowrap; }
thead th.number { white-space: normal; }
.matrix td, .matrix th { padding: .3rem .5rem; text-align: right; border: 1px solid var(--paper); }
.matrix td.right { font-weight: 700; }
dl { display: grid; grid-template-columns: minmax(8rem, max-content) 1fr; gap: .15rem 1.2rem; margin: .5rem 0; }
dt { color: var(--faint); } dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
.bars { list-style: none; margin: .5rem 0; padding: 0; max-width: 46rem; font-size: .92rem; break-inside: avoid;
  display: grid; grid-template-columns: fit-content(14rem) minmax(5rem, 1fr) max-content; gap: 0 .7rem; }
.bars li { display: contents; }
.bars .name { overflow-wrap: anywhere; }
.bars .value { text-align: right; font-variant-numeric: tabular-nums; }
.track { position: relative; height: .8rem; background: var(--raised); border-radius: .15rem; align-self: center; }
.track.signed::after { content: "";
  position: absolute; left: 50%; top: -.15rem; bottom: -.15rem; border-left: 1px solid var(--faint); }
.bar { position: absolute; top: 0; bottom: 0; background: var(--s0); border-radius: .15rem; }
.bar.below { background: var(--s1); }
details { margin: .6rem 0; } summary { cursor: pointer; color: var(--faint); }
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: .92em; overflow-wrap: anywhere; }
@media (max-width: 34rem) {
  dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .45rem; }
  .bars { grid-template-columns: fit-content(9rem) minmax(4rem, 1fr) max-content; }
}
@page { margin: 1.5cm; }
@media print {
  :root { color-scheme: light;
    --paper: #fff; --raised: #f2f2f2; --ink: #000; --faint: #444; --rule: #bbb; --grid: #ddd;
    --s0: #0072b2; --s1: #c4500a; --s2: #00805e; --s3: #9a3e8c; --s4: #7a6200; --s5: #4a4f57;
    --good: #00704f; --warn: #a34000; --heat: 0 114 178; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  body { font-size: 10.5pt; } main { max-width: none; padding: 0; } nav { display: none; }
  .charts { grid-template-columns: 1fr 1fr; } h2, h3 { break-after: avoid; } tr { break-inside: avoid; }
  .scroll { overflow: visible; } section > p { break-after: avoid; } th, td { padding-right: .5rem; }
  .matrix { font-size: 8pt; }
  details::details-content { content-visibility: visible; block-size: auto; } details.run { break-before: page; }
}
"""
