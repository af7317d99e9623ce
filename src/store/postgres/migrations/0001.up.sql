-- Names and values of the whole store.
create table meta (
    name text primary key,
    value text not null
);

-- The replicas that serve clients. One whose heartbeat is old has died.
create table replica (
    id text primary key,
    peer_url text not null,
    build text not null,
    started timestamptz not null default now(),
    heartbeat timestamptz not null default now()
);

-- What is small, read whole and kept in memory by every replica. A change takes a number that grows within its kind, so that a replica
-- reads what is newer than the last number that it knows. A record without a body is one that was removed.
create sequence change_number;
create table record (
    kind text not null,
    key text not null,
    number bigint not null default nextval('change_number'),
    body bytea,
    changed timestamptz not null default now(),
    primary key (kind, key)
);
create index record_by_number on record (kind, number);

-- The state of sessions that has changed since their handshake.
create table session (
    hash bytea primary key,
    body bytea not null,
    ended boolean not null default false,
    expires timestamptz not null
);
create index session_by_expiry on session (expires);

-- The replicas that have the servers with a state.
create table home (
    session bytea not null,
    server text not null,
    replica text not null,
    sealed text,
    until timestamptz not null,
    primary key (session, server)
);

-- Answers whose client was gone.
create table answer (
    stream text not null,
    sequence bigint not null,
    owner bytea not null,
    body bytea not null,
    expires timestamptz not null,
    primary key (stream, sequence)
);
create index answer_by_expiry on answer (expires);

-- What ends soon and is used once: codes, questions for consent.
create table ticket (
    kind text not null,
    key text not null,
    body bytea not null,
    expires timestamptz not null,
    primary key (kind, key)
);
create index ticket_by_expiry on ticket (expires);

-- Logins at servers, sealed. A replica that changes one has its lease, with a fence.
create table login (
    key text primary key,
    body bytea,
    version bigint not null default 0,
    renewer text,
    renew_until timestamptz,
    changed timestamptz not null default now()
);

-- The audit logs of all replicas. A line has the hash of the one before it in its chain.
create table audit (
    day date not null,
    chain text not null,
    place bigint not null,
    line text not null,
    primary key (day, chain, place)
);

-- The calls of limits that replicas count together. A crash loses them, until a later migration.
create unlogged table allowance (
    key text not null,
    period bigint not null,
    used bigint not null,
    granted bigint not null,
    ends timestamptz not null,
    primary key (key, period)
);
