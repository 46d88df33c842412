// Transfers that their programs report: all of them, or the one that the address names.

import { listPage } from "./list.js";
import { onePage } from "./one.js";

const id = new URLSearchParams(location.search).get("id");
if (id) onePage(id);
else listPage();
