DROP TABLE quarantine_decisions;
