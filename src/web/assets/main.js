import { html, render } from "./preact.js";

render(html`<p>workerctl</p>`, document.body);
