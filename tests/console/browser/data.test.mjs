// The part Data: tables, rows page by page, and changes that are reviewed before they are applied.

import assert from "node:assert/strict";
import { test } from "node:test";
import { asked, barriers, cells, closed, eventually, picture, query, signedIn, withPage } from "./page.mjs";

await asked("POST", "/v1/transaction", {
  statements: [
    "CREATE TABLE customers (id SERIAL PRIMARY KEY, name TEXT NOT NULL, city TEXT, since DATE DEFAULT '2026-01-01')",
    "CREATE TABLE products (sku TEXT PRIMARY KEY, title TEXT NOT NULL, price NUMERIC(10,2) CHECK (price >= 0), details JSONB)",
    "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INT NOT NULL REFERENCES customers ON DELETE CASCADE, placed TIMESTAMPTZ NOT NULL, note TEXT)",
    "CREATE TABLE lines (order_id BIGINT REFERENCES orders ON DELETE CASCADE, line INT, sku TEXT NOT NULL REFERENCES products, quantity INT NOT NULL, PRIMARY KEY (order_id, line))",
    "CREATE INDEX orders_by_customer ON orders (customer, placed)",
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value JSONB)",
    "CREATE TABLE log (at TIMESTAMPTZ, entry TEXT)",
    "CREATE VIEW recent AS SELECT id, customer FROM orders",
    "INSERT INTO customers (name, city) SELECT 'Customer ' || n, CASE WHEN n % 4 = 0 THEN NULL ELSE 'City ' || n % 9 END FROM generate_series(1, 1000) AS t(n)",
    "INSERT INTO products SELECT 'sku-' || n, 'Product ' || n, n * 1.25, jsonb_build_object('colour', 'blue', 'size', n) FROM generate_series(1, 50) AS t(n)",
    "INSERT INTO orders SELECT n, 1 + n % 1000, TIMESTAMPTZ '2026-01-01Z' + n * interval '7 minutes', NULL FROM generate_series(1, 5000) AS t(n)",
    "INSERT INTO lines SELECT n, l, 'sku-' || (1 + (n * l) % 50), l FROM generate_series(1, 2000) AS t(n), generate_series(1, 2) AS u(l)",
  ],
});
await query("INSERT INTO orders VALUES (9007199254740993, 1, '2026-06-01Z', 'beyond the numbers of JavaScript')");

const firstCell = async (page) => (await cells(page))[0]?.[0];
const openCell = async (page, text) => page.locator(".grid-cell", { hasText: text }).first().dblclick();

test("the schema is drawn, and a box leads to its table", withPage("data", async (page) => {
  await page.locator(".schema-table").first().waitFor();
  await eventually(async () => assert.equal(await page.locator(".schema-line").count(), 3));
  assert.deepEqual(await barriers(page), []);
  await picture(page, "schema");
  await page.locator(".schema-table", { hasText: "customers" }).first().click();
  await page.getByRole("grid", { name: "Rows of customers" }).waitFor();
}));

test("rows are read page by page, forward, backward, and from the end", withPage("data/orders", async (page) => {
  await page.getByText("1", { exact: true }).first().waitFor();
  await page.getByText("200 rows here").waitFor();
  await eventually(async () => assert.equal(await firstCell(page), "1"));
  await page.getByRole("button", { name: "Next page" }).click();
  await page.locator(".grid-cell", { hasText: /^201$/ }).waitFor();
  await page.getByRole("button", { name: "Page before" }).click();
  await page.locator(".grid-cell", { hasText: /^1$/ }).first().waitFor();
  await page.getByRole("button", { name: "Last page" }).click();
  await page.locator(".grid-cell", { hasText: /^4802$/ }).waitFor();
  await page.getByRole("grid").focus();
  await page.keyboard.press("Control+End");
  await page.locator(".grid-cell", { hasText: "9007199254740993" }).waitFor();
  assert.deepEqual(await barriers(page), []);
}));

test("of a wide table the cells in sight are drawn, and the keys lead to the others", async () => {
  const names = Array.from({ length: 200 }, (_, at) => `column_${at}`);
  await query(`CREATE TABLE wide (id INT PRIMARY KEY, ${names.map((name) => `${name} TEXT DEFAULT '${name}'`).join(", ")})`);
  await query("INSERT INTO wide (id) SELECT generate_series(1, 50)");
  const page = await signedIn("data/wide");
  await page.locator(".grid-cell", { hasText: /^column_0$/ }).first().waitFor();
  const drawn = () => page.locator(".grid-row").first().locator(".grid-cell").count();
  assert.ok((await drawn()) < 30, `${await drawn()} cells of a row`);
  await page.getByRole("grid").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("End");
  const last = page.locator(".grid-cell.is-active", { hasText: "column_199" });
  await last.waitFor();
  const header = page.getByRole("columnheader", { name: "column_199" });
  await eventually(async () => assert.equal((await last.boundingBox()).x, (await header.boundingBox()).x));
  assert.ok((await drawn()) < 30);
  await page.keyboard.press("Home");
  await page.locator(".grid-cell.is-active", { hasText: /^1$/ }).waitFor();
  await closed(page);
});

test("a cell is changed by keyboard alone, and what is no boolean is not taken for one", async () => {
  await query("CREATE TABLE flags (id INT PRIMARY KEY, on_sale BOOLEAN)");
  await query("INSERT INTO flags VALUES (1, true)");
  const page = await signedIn("data/flags");
  await page.locator(".grid-cell", { hasText: "true" }).waitFor();
  const change = async (text) => {
    await page.getByRole("grid").focus();
    for (const key of ["ArrowDown", "End", "Enter"]) await page.keyboard.press(key);
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Control+a");
    await page.keyboard.type(text);
    for (let tabs = 0; tabs < 10 && (await page.evaluate(() => document.activeElement.textContent)) !== "Change"; tabs += 1) await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  };
  await change("off");
  await page.locator(".grid-cell.is-changed", { hasText: "false" }).waitFor();
  await change("perhaps");
  await page.getByRole("button", { name: /Review/ }).click();
  await page.getByText("invalid input syntax for type boolean").first().waitFor();
  await closed(page);
});

test("filters are conditions with parameters", withPage("data/customers", async (page) => {
  await page.getByLabel("Column").selectOption("name");
  await page.getByLabel("Condition").selectOption("contains");
  await page.getByLabel("Value").fill("er 99");
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await page.getByText("11 rows here").waitFor();
  await page.getByLabel("Column").selectOption("city");
  await page.getByLabel("Condition").selectOption("null");
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await page.getByText("2 rows here").waitFor();
  await page.getByRole("button", { name: "Remove this filter" }).first().click();
  await page.getByText("200 rows here").waitFor();
}));

test("a foreign key is followed, there and back", withPage("data/orders", async (page) => {
  await page.locator(".is-reference").first().dblclick();
  await page.getByRole("link", { name: "Go to customers 2" }).click();
  await page.getByRole("grid", { name: "Rows of customers" }).waitFor();
  await page.getByText("1 rows here").waitFor();
  await openCell(page, "Customer 2");
  await page.getByRole("link", { name: /Rows of orders that refer/ }).click();
  await page.getByText("5 rows here").waitFor();
  await page.getByRole("link", { name: "Definition" }).click();
  await page.getByText("FOREIGN KEY (customer)").waitFor();
  await page.getByText("CREATE INDEX orders_by_customer").waitFor();
  assert.deepEqual(await barriers(page), []);
}));

test("changes are reviewed, and applied as one transaction", withPage("data/customers", async (page) => {
  await openCell(page, "Customer 5");
  await page.locator("dialog textarea").fill("Ada <b>Lovelace</b>");
  await page.getByRole("button", { name: "Change" }).click();
  await openCell(page, "Customer 6");
  await page.getByRole("button", { name: "Delete this row" }).click();
  await page.getByRole("button", { name: "Add row" }).click();
  await page.locator("dialog").getByLabel("name text").fill("New one");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByText("3 changes not applied").waitFor();
  await page.getByRole("button", { name: "Review" }).click();
  await page.getByRole("region", { name: "Changes" }).waitFor();
  await picture(page, "review");
  assert.deepEqual(await barriers(page), []);
  assert.equal((await query("SELECT count(*) AS n FROM customers")).rows[0].n, 1000);
  assert.match(await page.getByRole("region", { name: "Changes" }).innerText(), /orders/); // the cascade
  await page.getByRole("button", { name: "Apply as one transaction" }).click();
  await page.getByText(/Applied, as version/).waitFor();
  const { rows } = await query("SELECT name FROM customers WHERE id IN (5, 6) OR name = 'New one' ORDER BY id");
  assert.deepEqual(rows, [{ name: "Ada <b>Lovelace</b>" }, { name: "New one" }]);
}));

test("what others have changed meanwhile is shown, and nothing is applied", withPage("data/products", async (page) => {
  await openCell(page, "Product 1");
  await page.locator("dialog textarea").fill("Mine");
  await page.getByRole("button", { name: "Change" }).click();
  await query("UPDATE products SET title = 'Theirs' WHERE sku = 'sku-1'");
  await page.getByRole("button", { name: "Review" }).click();
  await page.getByText("Row sku-1 has changed").waitFor();
  const text = await page.locator("dialog").innerText();
  for (const word of ["Product 1", "Theirs", "Mine"]) assert.ok(text.includes(word));
  await page.getByRole("button", { name: "Keep mine" }).click();
  await page.getByRole("button", { name: "Apply as one transaction" }).click();
  await page.getByText(/Applied, as version/).waitFor();
  assert.equal((await query("SELECT title FROM products WHERE sku = 'sku-1'")).rows[0].title, "Mine");
}));

test("a constraint that a change breaks is told, and nothing is applied", withPage("data/products", async (page) => {
  await openCell(page, "2.50");
  await page.locator("dialog textarea").fill("-1");
  await page.getByRole("button", { name: "Change" }).click();
  await page.getByRole("button", { name: "Review" }).click();
  await page.getByText(/violates check constraint/).waitFor();
}));

test("a table without a key and a view are shown, and cannot be changed", withPage("data/log", async (page) => {
  await page.getByText("rows cannot be changed here").waitFor();
  await page.getByRole("link", { name: /recent/ }).click();
  await page.getByRole("grid", { name: "Rows of recent" }).waitFor();
  await page.locator(".grid-cell").first().waitFor();
}));

for (const [name, options] of [
  ["data-dark", { colorScheme: "dark" }],
  ["data-phone", { colorScheme: "light", viewport: { width: 390, height: 780 } }],
]) {
  test(`no barrier in ${name}`, async () => {
    const page = await signedIn("data/orders", options);
    await page.locator(".grid-cell").first().waitFor();
    if (name === "data-phone") await picture(page, name);
    assert.deepEqual(await barriers(page), []);
    const small = await page.locator(".part-head a, .part-head button").evaluateAll((all) =>
      all.map((each) => [each.ariaLabel ?? each.textContent, each.getBoundingClientRect()])
        .filter(([, { width, height }]) => width > 0 && (width < 24 || height < 24)) // too small for a finger
        .map(([label]) => label),
    );
    assert.deepEqual(small, []);
    await closed(page);
  });
}
