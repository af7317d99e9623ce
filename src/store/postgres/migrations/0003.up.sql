-- The counts of days and months must outlast a crash and be on a standby.
alter table allowance set logged;
