"""Make stix-two-math.woff2, the font for formulas. (Text and code use the fonts of the reader's own system.)

The source is STIX Two Math 2.12 (licence: OFL.txt), as the npm package @fontsource/stix-two-math 5.3.0
carries it. This keeps the signs that formulas here use; a sign that is missing shows in another font until
it is added to SIGNS. It also narrows the tall root signs: Chromium reserves the width of the widest of them
for every root, which left a hole of almost half a letter behind each small one. With fonttools 4.68.0 and
brotli 1.2.1 installed:

    npm pack @fontsource/stix-two-math@5.3.0
    tar xzf fontsource-stix-two-math-5.3.0.tgz
    python make.py package/files/stix-two-math-latin-400-normal.woff2 stix-two-math.woff2
"""

import sys

from fontTools.pens.transformPen import TransformPen
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.subset import Options, Subsetter, parse_unicodes
from fontTools.ttLib import TTFont

SIGNS = """
    20-7E A0 AC AF-B1 B4 B7 D7 F7 131 237 2C6 2C7 2D8 2DC 302-30C 391-3A9 3B1-3C9 3D1 3D5 3F5 2016
    2020 2026 2032 2033 2061-2064 20D7 2102 210B 210E 2110 2112 2113 2115 211A 211B 211D 2124 212C
    2130 2131 2133 2190-2195 21A6 21D0 21D2 21D4 2200 2202 2203 2205-220F 2211-2213 2215 2217-221A
    221D 221E 2223 2225 2227-222B 223C 2243 2245 2248 2254 2260 2261 2264 2265 226A 226B 2282 2286
    2295 2297 2299 22A4 22A5 22C5 22C6 22EE-22F1 2308-230B 23DE 23DF 27E8 27E9 2A01 2A02 1D400-1D49B
    1D49C-1D4B5 1D538-1D550 1D6A4 1D6A5 1D6A8-1D755
"""
WIDEST_ROOT = 860  # of 1000 to the font size; the small sign has 794, the tall ones had up to 1212


def make(source: str, target: str) -> None:
    """Read the whole font, write the one that the book ships."""
    font = TTFont(source, recalcTimestamp=False)
    options = Options(hinting=False, flavor="woff2")
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=parse_unicodes(" ".join(SIGNS.split())))
    subsetter.subset(font)

    variants = font["MATH"].table.MathVariants
    signs = variants.VertGlyphCoverage.glyphs
    root = variants.VertGlyphConstruction[signs.index(font.getBestCmap()[0x221A])]
    names = [record.VariantGlyph for record in root.MathGlyphVariantRecord]
    names += [part.glyph for part in root.GlyphAssembly.PartRecords]
    for name in set(names):
        width, bearing = font["hmtx"][name]
        if width > WIDEST_ROOT:
            narrower = WIDEST_ROOT / width
            pen = TTGlyphPen(None)
            font.getGlyphSet()[name].draw(TransformPen(pen, (narrower, 0, 0, 1, 0, 0)))
            font["glyf"][name] = pen.glyph()
            font["hmtx"][name] = (WIDEST_ROOT, round(bearing * narrower))

    font.flavor = "woff2"
    font.save(target)


if __name__ == "__main__":
    make(*sys.argv[1:])
