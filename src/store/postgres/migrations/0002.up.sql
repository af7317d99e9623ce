-- What is kept for a time and bounded: stored results, sealed for the identity and session that they belong to, and lists and
-- vectors, which can be made again.
create table shelf (
    kind text not null,
    scope text not null,
    key text not null,
    body bytea not null,
    created timestamptz not null default now(),
    expires timestamptz not null,
    primary key (kind, scope, key)
);
create index shelf_by_expiry on shelf (expires);

-- The statistics of all replicas: one record for each day.
create table usage (
    day date primary key,
    body bytea not null,
    changed timestamptz not null default now()
);
