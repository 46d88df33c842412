// "Try it": sends what a form says, shows what comes back. Plain fetch, to this host only.

import { offerSignIn } from "../shared/shell.js";

const MOST_SHOWN = 20000;

function target(form) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  const headers = {};
  for (const field of form.querySelectorAll("[data-in]")) {
    const value = field.value.trim();
    if (value === "") continue;
    if (field.dataset.in === "path") {
      path = path.replace(`{${field.name}}`, encodeURIComponent(value));
    } else if (field.dataset.in === "header") {
      headers[field.name] = value;
    } else {
      query.append(field.name, value);
    }
  }
  const text = query.toString();
  return { url: `.${path}${text ? `?${text}` : ""}`, headers };
}

function shown(text, type) {
  if (type.includes("json")) {
    try {
      text = JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      // shown as it came
    }
  }
  return text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}\n... (${text.length} characters)` : text;
}

async function ask(form, answer) {
  const { url, headers } = target(form);
  const body = form.querySelector("textarea")?.value;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  answer.hidden = false;
  answer.textContent = "...";
  const began = performance.now();
  try {
    const response = await fetch(url, { method: form.dataset.method, headers, body });
    const type = response.headers.get("Content-Type") ?? "";
    const first = `${form.dataset.method} ${url}\n${response.status}, ${Math.round(performance.now() - began)} ms\n\n`;
    if (type.startsWith("text/event-stream")) {
      answer.textContent = first;
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        answer.textContent = (answer.textContent + part.value).slice(-MOST_SHOWN);
      }
      return;
    }
    answer.textContent = first + shown(await response.text(), type);
  } catch (error) {
    answer.textContent = `No answer: ${error.message}`;
  }
}

for (const form of document.querySelectorAll("form[data-path]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask(form, form.querySelector(".answer"));
  });
}
offerSignIn();
