// Starts the player of a run page. The recording comes as scripts (a page opened from disk may not fetch),
// one for each part; a part is loaded when it is chosen. Without this script the log below the player remains.
(function () {
  "use strict";
  const screen = document.getElementById("screen");
  if (!screen) return;
  const parts = new Map();
  const part = document.getElementById("part");
  const speed = document.getElementById("speed");
  const pauses = document.getElementById("pauses");
  let player = null;

  window.refereeCast = function (number, text) {
    parts.set(number, text);
    show(number);
  };

  function chosen() {
    return part ? Number(part.value) : 1;
  }

  function show(number) {
    if (number !== chosen()) return;
    if (player) player.dispose();
    screen.replaceChildren();
    player = window.AsciinemaPlayer.create({ data: parts.get(number) }, screen, {
      fit: "width",
      controls: true,
      speed: Number(speed.value),
      idleTimeLimit: pauses.checked ? 2 : undefined,
      poster: "npt:0:01",
      theme: "asciinema",
      terminalFontFamily: getComputedStyle(document.body).getPropertyValue("--mono"),
    });
    window.refereePlayer = player;
  }

  function load() {
    const number = chosen();
    if (parts.has(number)) return show(number);
    const script = document.createElement("script");
    script.src = screen.dataset.parts.replace("N", String(number));
    script.onerror = function () {
      screen.textContent = "The recording could not be loaded; it can be downloaded below.";
    };
    document.head.append(script);
  }

  if (!window.AsciinemaPlayer) {
    screen.querySelector("p").textContent =
      "The player was not installed when this page was built; the recording can be downloaded below.";
    return;
  }
  for (const knob of [part, speed, pauses]) {
    if (knob) knob.addEventListener("change", load);
  }
  load();
})();
