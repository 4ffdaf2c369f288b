// Shows the notes, and adds what is written.
async function show() {
  const notes = await (await fetch("/notes")).json();
  list.replaceChildren(...notes.map((note) => {
    const item = document.createElement("li");
    item.textContent = note.text;
    return item;
  }));
}
form.onsubmit = async (event) => {
  event.preventDefault();
  await fetch("/notes", {method: "POST", body: JSON.stringify({text: text.value})});
  text.value = "";
  await show();
};
show();
