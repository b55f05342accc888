"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const form = $("controls");
  const whole = new Set(["max_items", "items_per_user"]);
  const rounded = (name, value) =>
    whole.has(name) ? String(Math.round(value)) : String(Number(value.toPrecision(2)));

  for (const slider of form.querySelectorAll("input[type=range]")) {
    const name = slider.id.replace("-range", "");
    const box = $(name);
    const follow = () => {
      slider.value = String(Math.log10(Number(box.value)));
      slider.setAttribute("aria-valuetext", box.value);
    };
    slider.addEventListener("input", () => {
      box.value = rounded(name, 10 ** Number(slider.value));
      slider.setAttribute("aria-valuetext", box.value);
    });
    box.addEventListener("input", follow);
    follow();
  }

  const ask = async (path, query) => (await fetch(`${path}?${query}`)).json();

  const show = (answer) => {
    const failed = "error" in answer;
    $("error").hidden = !failed;
    $("needed").hidden = failed;
    for (const id of ["figures", "plan", "calls"]) $(id).hidden = failed;
    $("error").textContent = failed ? answer.error : "";
    $("about").textContent = failed ? "" : answer.about;
    $("unwise").hidden = failed || !answer.unwise;
    $("unwise").textContent = failed ? "" : answer.unwise;
    if (failed) return;
    for (const id of ["half", "most", "command", "python"]) $(id).textContent = answer[id];
    for (const id of ["words", "rounds"]) $(id).innerHTML = answer[id];
  };

  const busy = (yes) => {
    $("results").setAttribute("aria-busy", String(yes));
    $("busy").hidden = !yes;
  };

  // One question at a time: whatever moved meanwhile is asked for next.
  let asking = false;
  const update = async () => {
    if (asking) return;
    asking = true;
    let query;
    do {
      query = new URLSearchParams(new FormData(form)).toString();
      busy(true);
      try {
        const answer = await ask("/numbers", query);
        show(answer);
        if (!("error" in answer)) {
          const drawn = await ask("/curves", query);
          for (const id of ["chance", "needs", "table"]) $(id).innerHTML = drawn[id];
        }
      } catch {
        show({ error: "dp-sips explore has ended: start it again, and reload this page" });
      }
    } while (query !== new URLSearchParams(new FormData(form)).toString());
    asking = false;
    busy(false);
  };

  let waiting;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(update, 150);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  update();
})();
