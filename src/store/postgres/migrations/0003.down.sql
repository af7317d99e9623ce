alter table allowance set unlogged;
