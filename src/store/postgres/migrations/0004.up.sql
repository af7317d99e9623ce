-- The identity of a session, so that the rows of each one are bounded.
alter table session add column owner bytea;
create index session_by_owner on session (owner, expires);

-- Whether the replica reaches itself at its URL; unknown at first.
alter table replica add column reached boolean;
