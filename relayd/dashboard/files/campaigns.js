// Campaigns: all of them, or the one that the address names.

import { listPage } from "./campaigns_list.js";
import { onePage } from "./campaigns_one.js";

const id = new URLSearchParams(location.search).get("id");
if (id) onePage(id);
else listPage();
