// Figures of links and VMs as changes name them: [in words, as people read it, whether more is better].

import { figure, gbps, mbps, ms } from "./format.js";

export const FIGURES = {
  aggregate_gbps: ["Aggregate", gbps, true],
  per_flow_mbps: ["One flow", mbps, true],
  rtt_ms: ["Round trip", ms, false],
  egress_gbps: ["Egress cap", gbps, true],
  ingress_gbps: ["Ingress cap", gbps, true],
  window_mb: ["TCP window", (value) => `${figure(value)} MB`, true],
  aggregate_mbps: ["Aggregate", (value) => gbps(value / 1000), true],
};
