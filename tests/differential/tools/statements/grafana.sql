SELECT quote_ident(table_name) FROM information_schema.tables
WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog', '_timescaledb_cache', '_timescaledb_catalog', '_timescaledb_internal', '_timescaledb_config', 'timescaledb_information', 'timescaledb_experimental')
  AND table_type = 'BASE TABLE' AND quote_ident(table_schema) IN (
          SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
          FROM generate_series(array_lower(string_to_array(current_setting('search_path'),','),1), array_upper(string_to_array(current_setting('search_path'),','),1)) as i,
          string_to_array(current_setting('search_path'),',') s) ORDER BY 1;

SELECT CASE WHEN quote_ident(table_schema) IN (
    SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
    FROM generate_series(array_lower(string_to_array(current_setting('search_path'),','),1), array_upper(string_to_array(current_setting('search_path'),','),1)) as i,
    string_to_array(current_setting('search_path'),',') s)
  THEN quote_ident(table_name)
  ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS "table"
FROM information_schema.tables
WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog') ORDER BY 1;

SELECT quote_ident(column_name) AS "column", data_type AS "type"
FROM information_schema.columns
WHERE CASE WHEN array_length(parse_ident('public.users'),1) = 2
  THEN quote_ident(table_schema) = (parse_ident('public.users'))[1] AND quote_ident(table_name) = (parse_ident('public.users'))[2]
  ELSE quote_ident(table_name) = 'users' END
ORDER BY ordinal_position;

SELECT current_setting('server_version_num')::int/100 >= 1500 AS version;

SELECT extversion FROM pg_extension WHERE extname = 'timescaledb';

SELECT $$ok$$ AS "time", 1 AS value;

SELECT floor(extract(epoch from created_at)/3600)*3600 AS "time", avg(age) AS "age" FROM users WHERE created_at BETWEEN '2024-01-01T00:00:00Z' AND '2024-12-31T00:00:00Z' GROUP BY 1 ORDER BY 1;

SELECT to_timestamp(1704067200) AS t, extract(epoch from to_timestamp(1704067200));

SELECT date_bin('1 hour', created_at, '2000-01-01'::timestamp AT TIME ZONE 'UTC') AS time, count(*) FROM users GROUP BY time ORDER BY time;

SELECT DISTINCT feels::text FROM users WHERE feels IS NOT NULL ORDER BY 1;

SELECT hostname FROM (VALUES ('a', 1), ('b', 2)) AS v(hostname, id) WHERE hostname ~* '^(a|b)$' ORDER BY 1;

SELECT s.datname, s.numbackends >= 0 AS n, s.xact_commit >= 0 AS c, s.blks_hit >= 0 AS h, s.conflicts >= 0 AS f, s.stats_reset FROM pg_stat_database s WHERE false;

-- columns: counts of the server
SELECT checkpoints_timed, checkpoints_req, checkpoint_write_time, buffers_checkpoint, buffers_clean, maxwritten_clean, buffers_backend, buffers_alloc, stats_reset FROM pg_stat_bgwriter;

-- columns: counts
SELECT schemaname, relname, seq_scan, idx_scan, n_tup_ins, n_tup_upd, n_tup_del, n_tup_hot_upd, n_live_tup, n_dead_tup, n_mod_since_analyze, last_vacuum, last_autovacuum, last_analyze, vacuum_count FROM pg_stat_user_tables ORDER BY 1, 2;

-- columns: counts
SELECT relname, indexrelname, idx_scan, idx_tup_read, idx_tup_fetch FROM pg_stat_user_indexes ORDER BY 1, 2;

-- columns: locks
SELECT mode, count(*) FROM pg_locks GROUP BY mode;

-- columns: sizes
SELECT pg_database.datname, pg_database_size(pg_database.datname) AS size FROM pg_database WHERE datname = current_database();

SELECT count(*) FROM pg_stat_replication;

SELECT slot_name, slot_type, active FROM pg_replication_slots;

SELECT CASE WHEN pg_is_in_recovery() THEN extract(epoch from now() - pg_last_xact_replay_timestamp()) ELSE 0 END AS lag;

-- columns: sessions
SELECT state, count(*) AS count, max(extract(epoch from now() - xact_start)) AS max_tx_duration FROM pg_stat_activity GROUP BY state;

SELECT archived_count, failed_count, last_archived_wal FROM pg_stat_archiver;

-- columns: counts
SELECT heap_blks_read, heap_blks_hit, idx_blks_read, idx_blks_hit FROM pg_statio_user_tables WHERE relname = 'users';
