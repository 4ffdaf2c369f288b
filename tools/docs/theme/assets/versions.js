// The menu of versions beside the title. The theme has one, but reads its list in a way that browsers
// do not allow to pages of the file system. `siteVersions` has the pages of each version: the menu
// leads to the same page of another version if it has this page, and else to its first page.
{
  const base = new URL(JSON.parse(document.getElementById("__config").textContent).base + "/",
    location.href);
  const current = base.pathname.split("/").at(-2);
  const page = location.pathname.slice(base.pathname.length) || "index.html";
  const element = (tag, name, content) => {
    const made = document.createElement(tag);
    made.className = `md-version${name}`;
    made.append(...content);
    return made;
  };
  const items = Object.entries(window.siteVersions ?? {}).map(([version, pages]) => {
    const link = element("a", "__link", [version]);
    link.href = new URL(`../${version}/${pages.includes(page) ? page : "index.html"}`, base);
    return element("li", "__item", [link]);
  });
  const button = element("button", "__current", [current]);
  button.setAttribute("aria-label", "Select version");
  document.querySelector(".md-header__topic").append(
    element("div", "", [button, element("ul", "__list", items)]));
}
