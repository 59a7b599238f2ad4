import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { chromium, type Browser, type Page } from "playwright-core";
import { chat, setUp } from "./gatewaySetup.ts";

// A browser of the system's: playwright-core brings none. CI installs one; elsewhere the suite says that it was skipped.
const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];

describe(
  "the status page in a browser",
  { skip: CHROMIUM === undefined ? "no Chromium on this machine" : false },
  () => {
    let browser: Browser;
    before(async () => {
      browser = await chromium.launch({
        executablePath: CHROMIUM ?? "",
        args: [...QUIET, "--disable-component-update"],
      });
    });
    after(() => browser.close());

    async function open(url: string): Promise<{ page: Page; problems: string[] }> {
      const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
      const problems: string[] = [];
      page.on("pageerror", (error) => problems.push(error.message));
      page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
      await page.goto(url);
      return { page, problems };
    }

    it("shows replicas and decisions, and what every replica would have cost", async () => {
      await using setup = await setUp([{}, {}]);
      for (let i = 0; i < 5; i++) {
        const answer = await chat(setup.url, { messages: [{ role: "user", content: `question ${i}` }], max_tokens: 4 });
        assert.equal(answer.status, 200);
      }
      const { page, problems } = await open(`${setup.adminUrl}/`);
      await page.locator("#state.ready").waitFor();
      assert.equal(await page.locator("#replicas tbody tr").count(), 2);
      assert.match((await page.locator("#tiles").textContent()) ?? "", /requests\/s.*TTFT.*output tokens\/s/);
      assert.match((await page.locator("#conditions").textContent()) ?? "", /limits_assumed .* set maxRunningRequests/);
      await page.locator("#decisions tbody tr").first().click();
      await page.locator(".price.chosen").waitFor();
      assert.equal(await page.locator(".price").count(), 2);
      assert.ok((await page.locator(".price.chosen .stack i").count()) > 0);
      assert.match((await page.locator(".legend").textContent()) ?? "", /queue.*prefill.*decode/);
      assert.deepEqual(problems, []);
      await page.close();
    });

    it("says of a speed that nobody has seen that it is a guess", async () => {
      await using setup = await setUp([{}]);
      const { page } = await open(`${setup.adminUrl}/`);
      await page.locator("#state.ready").waitFor();
      assert.deepEqual(
        (await page.locator("td.guess").allTextContents()).map((text) => text.endsWith("(a guess)")),
        [true, true],
      );
      await page.close();
    });

    it("can be read on a telephone: nothing is wider than the screen", async () => {
      await using setup = await setUp([{}]);
      await (await chat(setup.url, {})).text();
      const { page } = await open(`${setup.adminUrl}/`);
      await page.setViewportSize({ width: 360, height: 800 });
      await page.locator("#decisions tbody tr").first().click();
      await page.locator(".price.chosen").waitFor();
      const widest = "Math.max(...[...document.querySelectorAll('main *')].map((one) => one.scrollWidth))";
      assert.ok((await page.evaluate<number>(widest)) <= 360);
      await page.close();
    });

    it("asks for the admin token, and shows nothing before", async () => {
      await using setup = await setUp([{}], { admin: { token: "admin-token-1" } });
      const { page } = await open(`${setup.adminUrl}/`);
      await page.locator("#login").waitFor();
      assert.equal(await page.locator("#main").isVisible(), false);
      await page.locator("#token").fill("admin-token-1");
      await page.locator("#login button").click();
      await page.locator("#state.ready").waitFor();
      assert.equal(await page.locator("#replicas tbody tr").count(), 1);
      await page.close();
    });
  },
);
