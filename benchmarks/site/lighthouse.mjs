// Lighthouse over addresses: `node lighthouse.mjs CHROMIUM ADDRESS...` prints one line of JSON for each address and form.
// Throttling is simulated: a page loads at full speed, and the times on a slow network and processor are worked out from
// what it loaded. Notebooks, which are all alike, are seen on a phone only, the slower of the two.
import { launch } from "chrome-launcher";
import lighthouse, { desktopConfig } from "lighthouse";

const [chromePath, ...addresses] = process.argv.slice(2);
const forms = { mobile: undefined, desktop: desktopConfig };
const chrome = await launch({
  chromePath,
  chromeFlags: ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
try {
  for (const address of addresses) {
    for (const [form, config] of Object.entries(forms)) {
      if (form === "desktop" && address.includes("/notebooks/")) continue;
      const { lhr } = await lighthouse(address, { port: chrome.port, logLevel: "error", disableFullPageScreenshot: true }, config);
      const categories = Object.values(lhr.categories);
      const wanting = categories
        .filter(({ id }) => id !== "performance")
        .flatMap(({ id, auditRefs }) => auditRefs.map((reference) => ({ category: id, ...reference })))
        .filter(({ id, weight }) => weight > 0 && (lhr.audits[id].score ?? 1) < 1)
        .map(({ category, id }) => ({
          category,
          audit: id,
          says: lhr.audits[id].title,
          at: (lhr.audits[id].details?.items ?? []).slice(0, 5).map((item) => item.node?.snippet ?? item.url ?? item.description ?? item.source ?? ""),
        }));
      const numbers = ["first-contentful-paint", "largest-contentful-paint", "total-blocking-time", "cumulative-layout-shift", "speed-index"];
      console.log(JSON.stringify({
        address,
        form,
        error: lhr.runtimeError?.message,
        scores: Object.fromEntries(categories.map(({ id, score }) => [id, Math.round((score ?? 0) * 100)])),
        numbers: Object.fromEntries(numbers.map((id) => [id, lhr.audits[id].numericValue])),
        wanting,
      }));
    }
  }
} finally {
  chrome.kill();
}
