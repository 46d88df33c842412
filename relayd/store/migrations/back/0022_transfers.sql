DROP TABLE transfer_reports;
DROP TABLE transfers;
