alter table replica drop column reached;
drop index session_by_owner;
alter table session drop column owner;
