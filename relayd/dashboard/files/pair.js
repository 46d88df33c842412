import { say } from "./shell.js";

say("Nothing is here yet.");
