// What scrolls must be reachable by keyboard.
addEventListener("load", () => {
  for (const box of document.querySelectorAll("pre, .table-wrapper"))
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
});

// A message is pasted with its own numbers and paths, which no page holds: the patterns of `dtdebug diagnose` find its page.
addEventListener("load", async () => {
  const results = document.getElementById("search-results");
  const query = new URLSearchParams(location.search).get("q")?.trim();
  if (!results || !query || query.length > 2000) return;
  const root = document.documentElement.dataset.content_root;
  const answer = await fetch(`${root}_static/messages.json`);
  if (!answer.ok) return;
  const found = (await answer.json())
    .map((message) => ({ ...message, length: matched(message, query) }))
    .filter(({ length }) => length)
    .sort((a, b) => a.vague - b.vague || b.length - a.length)
    .slice(0, 5);
  if (found.length) results.before(section(root, found));
});

// How many of the query's characters are this message: those that a pattern finds, or all where its title holds its words.
function matched({ title, patterns }, query) {
  if (query.length > 3 && words(title).includes(words(query))) return query.length;
  return Math.max(0, ...patterns.map((pattern) => new RegExp(pattern, "im").exec(query)?.[0].length ?? 0));
}

function words(text) {
  return ` ${text.toLowerCase().match(/[\p{L}\p{N}]+/gu)?.join(" ") ?? ""} `;
}

function section(root, found) {
  const made = document.createElement("section");
  made.id = "search-messages";
  made.append(Object.assign(document.createElement("h2"), { textContent: "Printed messages" }));
  const list = made.appendChild(document.createElement("ul"));
  for (const { id, title } of found) {
    const link = Object.assign(document.createElement("a"), { href: `${root}messages/${id}/`, textContent: title });
    list.appendChild(document.createElement("li")).append(link);
  }
  return made;
}
