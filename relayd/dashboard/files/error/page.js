// An error is all text that came with the page; its frame has the theme and the token as others do.

import "../shared/kit.js";

