"""Makes results.md: the 2018 paper's findings, measured again on a lab and on a grid."""
