drop table answer;
drop table home;
drop table session;
drop table record;
drop sequence change_number;
drop table replica;
drop table meta;
