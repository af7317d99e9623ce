drop table usage;
drop table shelf;
