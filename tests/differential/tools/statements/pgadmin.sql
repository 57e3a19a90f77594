SET DateStyle=ISO; SET client_min_messages=notice; SELECT set_config('bytea_output','hex',false) FROM pg_show_all_settings() WHERE name = 'bytea_output'; SET client_encoding='UTF8';

SELECT
    roles.oid as id, roles.rolname as name,
    roles.rolsuper as is_superuser,
    CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreaterole END as can_create_role,
    CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreatedb END as can_create_db,
    CASE WHEN 'pg_signal_backend'=ANY(ARRAY(WITH RECURSIVE cte AS (
        SELECT pg_roles.oid,pg_roles.rolname FROM pg_roles WHERE pg_roles.oid = roles.oid
        UNION ALL
        SELECT m.roleid,pgr.rolname FROM cte cte_1 JOIN pg_auth_members m ON m.member = cte_1.oid
        JOIN pg_roles pgr ON pgr.oid = m.roleid)
        SELECT rolname FROM cte)) THEN True ELSE False END as can_signal_backend
FROM pg_catalog.pg_roles as roles WHERE rolname = current_user;

-- hides oid, did, datname, datallowconn, cancreate, owner
SELECT
    db.oid as did, db.datname, db.datallowconn,
    pg_encoding_to_char(db.encoding) AS serverencoding,
    has_database_privilege(db.oid, 'CREATE') as cancreate,
    datistemplate
FROM pg_catalog.pg_database db
WHERE db.datname = current_database();

SELECT
    gss_authenticated, encrypted
FROM pg_catalog.pg_stat_gssapi
WHERE pid = pg_backend_pid();

SELECT usename IS NOT NULL as has, backend_type FROM pg_stat_activity WHERE pid = pg_backend_pid();

SELECT
    nsp.oid, nsp.nspname as name,
    pg_catalog.has_schema_privilege(nsp.oid, 'CREATE') as can_create,
    pg_catalog.has_schema_privilege(nsp.oid, 'USAGE') as has_usage,
    des.description
FROM pg_catalog.pg_namespace nsp
LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid=nsp.oid AND des.classoid='pg_namespace'::regclass)
WHERE nspname NOT LIKE E'pg\\_%' AND
    NOT (
(nsp.nspname = 'pg_catalog' AND EXISTS
        (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'pg_class' AND
            relnamespace = nsp.oid LIMIT 1)) OR
    (nsp.nspname = 'pgagent' AND EXISTS
        (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'pga_job' AND
            relnamespace = nsp.oid LIMIT 1)) OR
    (nsp.nspname = 'information_schema' AND EXISTS
        (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'tables' AND
            relnamespace = nsp.oid LIMIT 1))
    )
ORDER BY nspname;

SELECT rel.oid, rel.relname AS name,
    (SELECT count(*) FROM pg_catalog.pg_trigger WHERE tgrelid=rel.oid AND tgisinternal = FALSE) AS triggercount,
    (SELECT count(*) FROM pg_catalog.pg_trigger WHERE tgrelid=rel.oid AND tgisinternal = FALSE AND tgenabled = 'O') AS has_enable_triggers,
    (CASE WHEN rel.relkind = 'p' THEN true ELSE false END) AS is_partitioned,
    (SELECT count(1) FROM pg_catalog.pg_inherits WHERE inhrelid=rel.oid LIMIT 1) as is_inherits,
    (SELECT count(1) FROM pg_catalog.pg_inherits WHERE inhparent=rel.oid LIMIT 1) as is_inherited,
    des.description
FROM pg_catalog.pg_class rel
LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid=rel.oid AND des.objsubid=0 AND des.classoid='pg_class'::regclass)
WHERE rel.relkind IN ('r','s','t','p') AND rel.relnamespace = {namespace public}::oid
    AND NOT rel.relispartition
ORDER BY rel.relname;

-- hides relacl_str, relowner, rows_cnt, spcname, spcoid, toast_table, reltuples, hastoasttable
SELECT rel.oid, rel.relname AS name, rel.reltablespace AS spcoid,rel.relacl IS NULL AS relacl_str,
    (CASE WHEN length(spc.spcname::text) > 0 THEN spc.spcname ELSE
        (SELECT sp.spcname FROM pg_catalog.pg_database dtb
        JOIN pg_catalog.pg_tablespace sp ON dtb.dattablespace=sp.oid
        WHERE dtb.oid = (SELECT oid FROM pg_catalog.pg_database WHERE datname=current_database())::oid)
    END) as spcname,
    (CASE rel.relreplident
            WHEN 'd' THEN 'default'
            WHEN 'n' THEN 'nothing'
            WHEN 'f' THEN 'full'
            WHEN 'i' THEN 'index'
    END) as replica_identity,
    (select nspname FROM pg_catalog.pg_namespace WHERE oid = {namespace public}::oid ) as schema,
    pg_catalog.pg_get_userbyid(rel.relowner) AS relowner, rel.relkind,
    (CASE WHEN rel.relkind = 'p' THEN true ELSE false END) AS is_partitioned,
    rel.relhassubclass, rel.reltuples::bigint >= -1 as rows_cnt, des.description,
    con.conname, con.conkey,
    EXISTS(select 1 FROM pg_catalog.pg_trigger
            JOIN pg_catalog.pg_proc pt ON pt.oid=tgfoid AND pt.proname='logtrigger'
            JOIN pg_catalog.pg_proc pc ON pc.pronamespace=pt.pronamespace AND pc.proname='slonyversion'
            WHERE tgrelid=rel.oid) AS isrepl,
    (SELECT count(*) FROM pg_catalog.pg_trigger WHERE tgrelid=rel.oid AND tgisinternal = FALSE) AS triggercount,
    (SELECT ARRAY(SELECT CASE WHEN (nspname NOT LIKE 'pg\_%') THEN
            pg_catalog.quote_ident(nspname)||'.'||pg_catalog.quote_ident(c.relname)
            ELSE pg_catalog.quote_ident(c.relname) END AS inherited_tables
        FROM pg_catalog.pg_inherits i
        JOIN pg_catalog.pg_class c ON c.oid = i.inhparent
        JOIN pg_catalog.pg_namespace n ON n.oid=c.relnamespace
        WHERE i.inhrelid = rel.oid ORDER BY inhseqno)) AS coll_inherits,
    (SELECT count(*)
        FROM pg_catalog.pg_inherits i
            JOIN pg_catalog.pg_class c ON c.oid = i.inhparent
            JOIN pg_catalog.pg_namespace n ON n.oid=c.relnamespace
        WHERE i.inhrelid = rel.oid) AS inherited_tables_cnt,
    (CASE WHEN rel.relpersistence = 'u' THEN true ELSE false END) AS relpersistence,
    substring(pg_catalog.array_to_string(rel.reloptions, ',') FROM 'fillfactor=([0-9]*)') AS fillfactor,
    substring(pg_catalog.array_to_string(rel.reloptions, ',') FROM 'parallel_workers=([0-9]*)') AS parallel_workers,
    substring(pg_catalog.array_to_string(rel.reloptions, ',') FROM 'toast_tuple_target=([0-9]*)') AS toast_tuple_target,
    (substring(pg_catalog.array_to_string(rel.reloptions, ',') FROM 'autovacuum_enabled=([a-z|0-9]*)'))::BOOL AS autovacuum_enabled,
    (CASE WHEN (rel.relrowsecurity) THEN true ELSE false END) AS rlspolicy,
    rel.reloptions AS reloptions, tst.reloptions AS toast_reloptions, rel.reloftype,
    CASE WHEN typ.typname IS NOT NULL THEN (select quote_ident(nspname) FROM pg_catalog.pg_namespace WHERE oid = {namespace public}::oid )||'.'||quote_ident(typ.typname) END AS typname,
    typ.typrelid AS typoid, am.amname,
    (CASE WHEN rel.reltoastrelid = 0 THEN false ELSE true END) AS hastoasttable,
    (SELECT pg_catalog.array_agg(provider || '=' || label) FROM pg_catalog.pg_seclabels sl1 WHERE sl1.objoid=rel.oid AND sl1.objsubid=0) AS seclabels,
    (CASE WHEN rel.oid <= 12999::oid THEN true ElSE false END) AS is_sys_table
FROM pg_catalog.pg_class rel
    LEFT OUTER JOIN pg_catalog.pg_tablespace spc on spc.oid=rel.reltablespace
    LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid=rel.oid AND des.objsubid=0 AND des.classoid='pg_class'::regclass)
    LEFT OUTER JOIN pg_catalog.pg_constraint con ON con.conrelid=rel.oid AND con.contype='p'
    LEFT OUTER JOIN pg_catalog.pg_class tst ON tst.oid = rel.reltoastrelid
    LEFT JOIN pg_catalog.pg_type typ ON rel.reloftype=typ.oid
    LEFT JOIN pg_catalog.pg_am am ON rel.relam = am.oid
WHERE rel.relkind IN ('r','s','t','p') AND rel.relnamespace = {namespace public}::oid
AND NOT rel.relispartition AND rel.oid = {class users}::oid ORDER BY rel.relname;

-- hides indrelid, owner
SELECT DISTINCT att.attname as name, att.atttypid, att.attlen, att.attnum, att.atttypmod, att.attnotnull,
    att.atthasdef, att.attisdropped, att.attislocal, att.attidentity, att.attgenerated,
    pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS defval,
    CASE WHEN att.attidentity in ('a', 'd') THEN 'i' WHEN att.attgenerated in ('s') THEN 'g' ELSE 'n' END AS colconstype,
    pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS genexpr, tab.relname as relname,
    CASE WHEN tab.relkind = 'v' THEN true ELSE false END AS is_view_only,
    seq.seqrelid IS NULL AS no_sequence,
    seq.seqstart, seq.seqincrement, seq.seqmin, seq.seqmax, seq.seqcache, seq.seqcycle,
    pg_catalog.format_type(ty.oid,NULL) AS typname,
    pg_catalog.format_type(ty.oid,att.atttypmod) AS displaytypname,
    pg_catalog.format_type(CASE WHEN ty.typelem > 0 THEN ty.typelem ELSE ty.oid END,NULL) as elemoid_type,
    CASE WHEN ty.typelem > 0 THEN ty.typelem ELSE ty.oid END as elemoid,
    (SELECT nspname FROM pg_catalog.pg_namespace WHERE oid = ty.typnamespace) as typnspname,
    ty.typstorage AS defaultstorage, att.attstorage, des.description, pk.conkey,
    (SELECT count(1) FROM pg_catalog.pg_type t2 WHERE t2.typname=ty.typname) > 1 AS isdup,
    CASE WHEN length(coll.collname::text) > 0 AND length(nspc.nspname::text) > 0  THEN
      pg_catalog.concat(pg_catalog.quote_ident(nspc.nspname),'.',pg_catalog.quote_ident(coll.collname))
    ELSE '' END AS collspcname,
    EXISTS(SELECT 1 FROM pg_catalog.pg_constraint WHERE conrelid=att.attrelid AND contype='f' AND att.attnum=ANY(conkey)) As is_fk,
    (SELECT pg_catalog.array_agg(provider || '=' || label) FROM pg_catalog.pg_seclabels sl1 WHERE sl1.objoid=att.attrelid AND sl1.objsubid=att.attnum) AS seclabels,
    (CASE WHEN (att.attnum < 1) THEN true ElSE false END) AS is_sys_column,
    (CASE WHEN (att.attidentity in ('a', 'd')) THEN 'i' WHEN (att.attgenerated in ('s')) THEN 'g' ELSE 'n' END) AS colconstype
FROM pg_catalog.pg_attribute att
  JOIN pg_catalog.pg_type ty ON ty.oid=atttypid
  LEFT OUTER JOIN pg_catalog.pg_attrdef def ON adrelid=att.attrelid AND adnum=att.attnum
  LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid=att.attrelid AND des.objsubid=att.attnum AND des.classoid='pg_class'::regclass)
  LEFT OUTER JOIN (pg_catalog.pg_depend dep JOIN pg_catalog.pg_class cs ON dep.classid='pg_class'::regclass AND dep.objid=cs.oid AND cs.relkind='S') ON dep.refobjid=att.attrelid AND dep.refobjsubid=att.attnum
  LEFT OUTER JOIN pg_catalog.pg_index pi ON pi.indrelid=att.attrelid AND indisprimary
  LEFT OUTER JOIN pg_catalog.pg_collation coll ON att.attcollation=coll.oid
  LEFT OUTER JOIN pg_catalog.pg_namespace nspc ON coll.collnamespace=nspc.oid
  LEFT OUTER JOIN pg_catalog.pg_sequence seq ON cs.oid=seq.seqrelid
  LEFT OUTER JOIN pg_catalog.pg_class tab on tab.oid = att.attrelid
  LEFT OUTER JOIN (SELECT conrelid, conkey FROM pg_catalog.pg_constraint WHERE contype='p') pk ON pk.conrelid = att.attrelid
WHERE att.attrelid = {class sales.orders}::oid
    AND att.attnum > 0
    AND att.attisdropped IS FALSE
ORDER BY att.attnum;

SELECT cls.oid, cls.relname as name, indrelid, indkey, indisclustered,
    indisvalid, indisunique, indisprimary, n.nspname, indnatts, cls.reltablespace AS spcoid,
    CASE WHEN cls.relkind = 'I' THEN true ELSE false END AS is_partitioned,
    tab.relname as tabname, indclass, con.oid AS conoid,
    CASE WHEN contype IN ('p', 'u', 'x') THEN desp.description ELSE des.description END AS description,
    pg_catalog.pg_get_expr(indpred, indrelid, true) as indconstraint, contype, condeferrable, condeferred, amname,
    (SELECT (CASE WHEN count(i.inhrelid) > 0 THEN true ELSE false END) FROM pg_inherits i WHERE i.inhrelid = cls.oid) as is_inherited,
    substring(pg_catalog.array_to_string(cls.reloptions, ',') from 'fillfactor=([0-9]*)') AS fillfactor
FROM pg_catalog.pg_index idx
    JOIN pg_catalog.pg_class cls ON cls.oid=indexrelid
    JOIN pg_catalog.pg_class tab ON tab.oid=indrelid
    LEFT OUTER JOIN pg_catalog.pg_tablespace ta on ta.oid=cls.reltablespace
    JOIN pg_catalog.pg_namespace n ON n.oid=tab.relnamespace
    JOIN pg_catalog.pg_am am ON am.oid=cls.relam
    LEFT JOIN pg_catalog.pg_depend dep ON (dep.classid = cls.tableoid AND dep.objid = cls.oid AND dep.refobjsubid = '0' AND dep.refclassid=(SELECT oid FROM pg_catalog.pg_class WHERE relname='pg_constraint') AND dep.deptype='i')
    LEFT OUTER JOIN pg_catalog.pg_constraint con ON (con.tableoid = dep.refclassid AND con.oid = dep.refobjid)
    LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid=cls.oid AND des.classoid='pg_class'::regclass)
    LEFT OUTER JOIN pg_catalog.pg_description desp ON (desp.objoid=con.oid AND desp.objsubid = 0 AND desp.classoid='pg_constraint'::regclass)
WHERE indrelid = {class users}::OID
    ORDER BY cls.relname;

SELECT
    i.indexrelid,
    CASE i.indoption[i.attnum - 1]
    WHEN 0 THEN ARRAY['ASC', 'NULLS LAST']
    WHEN 1 THEN ARRAY['DESC', 'NULLS FIRST']
    WHEN 2 THEN ARRAY['ASC', 'NULLS FIRST']
    WHEN 3 THEN ARRAY['DESC', 'NULLS LAST']
    ELSE ARRAY['UNKNOWN OPTION' || i.indoption[i.attnum - 1]::text, '']
    END::text[] AS options,
    i.attnum,
    pg_catalog.pg_get_indexdef(i.indexrelid, i.attnum, true) as attdef,
    CASE WHEN pg_catalog.pg_get_indexdef(i.indexrelid, i.attnum, true) = a.attname THEN FALSE ELSE TRUE END AS is_exp,
    CASE WHEN (o.opcdefault = FALSE) THEN o.opcname ELSE null END AS opcname,
    op.oprname AS oprname,
    CASE WHEN length(nspc.nspname::text) > 0 AND length(coll.collname::text) > 0  THEN
      pg_catalog.concat(pg_catalog.quote_ident(nspc.nspname), '.', pg_catalog.quote_ident(coll.collname))
    ELSE '' END AS collnspname
FROM (
      SELECT
          indexrelid, i.indoption, i.indclass,
          pg_catalog.unnest(ARRAY(SELECT pg_catalog.generate_series(1, i.indnatts) AS n)) AS attnum
      FROM
          pg_catalog.pg_index i
      WHERE i.indexrelid = 'users_age_idx'::regclass::OID
) i
    LEFT JOIN pg_catalog.pg_opclass o ON (o.oid = i.indclass[i.attnum - 1])
    LEFT OUTER JOIN pg_catalog.pg_constraint c ON (c.conindid = i.indexrelid)
    LEFT OUTER JOIN pg_catalog.pg_operator op ON (op.oid = c.conexclop[i.attnum])
    LEFT JOIN pg_catalog.pg_attribute a ON (a.attrelid = i.indexrelid AND a.attnum = i.attnum)
    LEFT OUTER JOIN pg_catalog.pg_collation coll ON a.attcollation=coll.oid
    LEFT OUTER JOIN pg_catalog.pg_namespace nspc ON coll.collnamespace=nspc.oid
ORDER BY i.attnum;

SELECT ct.oid, conname as name, condeferrable, condeferred, confupdtype, confdeltype,
    CASE confmatchtype WHEN 's' THEN FALSE WHEN 'f' THEN TRUE END AS confmatchtype,
    conkey, confkey, confrelid, nl.nspname as fknsp, cl.relname as fktab, nr.nspname as refnsp, cr.relname as reftab,
    description, convalidated, conislocal
FROM pg_catalog.pg_constraint ct
JOIN pg_catalog.pg_class cl ON cl.oid=conrelid
JOIN pg_catalog.pg_namespace nl ON nl.oid=cl.relnamespace
JOIN pg_catalog.pg_class cr ON cr.oid=confrelid
JOIN pg_catalog.pg_namespace nr ON nr.oid=cr.relnamespace
LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid=ct.oid AND des.classoid='pg_constraint'::regclass)
WHERE contype='f' AND conrelid = {class sales.lines}::oid
ORDER BY conname;

SELECT c.oid, conname as name, relname, nspname, description,
       pg_catalog.pg_get_expr(conbin, conrelid, true) as consrc,
       connoinherit, NOT convalidated as convalidated, conislocal
FROM pg_catalog.pg_constraint c
    JOIN pg_catalog.pg_class cl ON cl.oid=conrelid
    JOIN pg_catalog.pg_namespace nl ON nl.oid=relnamespace
LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid=c.oid AND des.classoid='pg_constraint'::regclass)
WHERE contype = 'c' AND conrelid = {class users}::oid ORDER BY conname;

SELECT 'datacl' as deftype, COALESCE(gt.rolname, 'PUBLIC') grantee, g.rolname grantor, pg_catalog.array_agg(privilege_type order by privilege_type) as privileges, pg_catalog.array_agg(is_grantable) as grantable
FROM (
    SELECT
        d.grantee, d.grantor, d.is_grantable,
        CASE d.privilege_type
        WHEN 'CREATE' THEN 'C'
        WHEN 'TEMPORARY' THEN 'T'
        WHEN 'CONNECT' THEN 'c'
        ELSE 'UNKNOWN'
        END AS privilege_type
    FROM
        (SELECT aclexplode(db.datacl) as aclitem_, db.datacl FROM pg_catalog.pg_database db WHERE db.datname = 'nothing') e, LATERAL aclexplode(e.datacl) d
    ) d
    LEFT JOIN pg_catalog.pg_roles g ON (d.grantor = g.oid)
    LEFT JOIN pg_catalog.pg_roles gt ON (d.grantee = gt.oid)
GROUP BY g.rolname, gt.rolname;

SELECT cl.oid as oid, relname as name, relnamespace AS schema, description AS comment, seqtypid::regtype::text AS type, seqstart, seqincrement, seqmin, seqmax, seqcache, seqcycle
FROM pg_catalog.pg_class cl
    LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid=cl.oid AND des.classoid='pg_class'::regclass)
    JOIN pg_catalog.pg_sequence ON seqrelid = cl.oid
    LEFT JOIN pg_catalog.pg_depend d1 ON d1.refobjid = cl.oid AND d1.deptype = 'a'
WHERE relkind = 'S' AND relnamespace = {namespace public}::oid
ORDER BY relname;

SELECT t.oid, t.typname AS name FROM pg_catalog.pg_type t
    LEFT OUTER JOIN pg_catalog.pg_type e ON e.oid=t.typelem
    LEFT OUTER JOIN pg_catalog.pg_class ct ON ct.oid=t.typrelid AND ct.relkind <> 'c'
    LEFT OUTER JOIN pg_catalog.pg_namespace nsp ON nsp.oid = t.typnamespace
WHERE t.typtype != 'd' AND t.typname NOT LIKE E'\\_%' AND t.typnamespace = {namespace public}::oid
    AND ct.oid is NULL
ORDER BY t.typname;

-- differs: PostgreSQL 16 has one more
SELECT pr.oid, pr.proname || '(' || COALESCE(pg_catalog.pg_get_function_identity_arguments(pr.oid), '') || ')' as name, lanname, pg_catalog.pg_get_userbyid(proowner) IS NOT NULL as funcowner
FROM pg_catalog.pg_proc pr
JOIN pg_catalog.pg_type typ ON typ.oid=prorettype
JOIN pg_catalog.pg_language lng ON lng.oid=prolang
WHERE proname IN ('lower', 'array_agg', 'to_char', 'generate_series', 'row_number') ORDER BY 2;

-- columns: numbers of what the server has done
SELECT
   (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE datname = current_database()) AS "Total",
   (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE state = 'active' AND datname = current_database())  AS "Active",
   (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE state = 'idle' AND datname = current_database())  AS "Idle";

-- columns: numbers of what the server has done
SELECT 'session_stats' AS chart_name, pg_catalog.row_to_json(t) AS chart_data
FROM (SELECT
   (SELECT sum(xact_commit) + sum(xact_rollback) FROM pg_catalog.pg_stat_database WHERE datname = current_database()) AS "Transactions",
   (SELECT sum(tup_inserted) FROM pg_catalog.pg_stat_database) AS "Inserts",
   (SELECT sum(blks_read) FROM pg_catalog.pg_stat_database) AS "Reads"
) t;

-- columns: sessions
SELECT
    pid, datname, usename, application_name, client_addr,
    pg_catalog.to_char(backend_start, 'YYYY-MM-DD HH24:MI:SS TZ') AS backend_start,
    state, wait_event_type || ': ' || wait_event AS wait_event,
    array_to_string(pg_catalog.pg_blocking_pids(pid), ', ') AS blocking_pids, query,
    pg_catalog.to_char(state_change, 'YYYY-MM-DD HH24:MI:SS TZ') AS state_change,
    pg_catalog.to_char(query_start, 'YYYY-MM-DD HH24:MI:SS TZ') AS query_start, backend_type,
    CASE WHEN state = 'active' THEN ROUND((extract(epoch from now() - query_start) / 60)::numeric, 2) ELSE 0 END AS active_since
FROM pg_catalog.pg_stat_activity ORDER BY pid;

-- columns: locks
SELECT pid, locktype, datname, relation::regclass, page, tuple, virtualxid transactionid, classid::regclass, objid, virtualtransaction, mode, granted, fastpath
FROM pg_catalog.pg_locks l LEFT OUTER JOIN pg_catalog.pg_database d ON (l.database = d.oid) ORDER BY pid, locktype;

SELECT gid, database, owner, transaction FROM pg_catalog.pg_prepared_xacts ORDER BY gid, database, owner;

-- columns: settings of the server
SELECT name, category, setting, unit, short_desc FROM pg_catalog.pg_settings ORDER BY category;

-- columns: counts
SELECT seq_scan AS "Sequential scans", seq_tup_read AS "Sequential tuples read", idx_scan AS "Index scans", idx_tup_fetch AS "Index tuples fetched", n_tup_ins AS "Tuples inserted", n_live_tup, heap_blks_read, heap_blks_hit, toast_blks_read, last_vacuum, last_autoanalyze, vacuum_count,
    pg_catalog.pg_relation_size(stat.relid) AS "Table size",
    CASE WHEN cl.reltoastrelid = 0 THEN NULL ELSE pg_catalog.pg_size_pretty(pg_catalog.pg_relation_size(cl.reltoastrelid)+ COALESCE((SELECT SUM(pg_catalog.pg_relation_size(indexrelid)) FROM pg_catalog.pg_index WHERE indrelid=cl.reltoastrelid)::int8, 0)) END AS "Toast table size"
FROM pg_catalog.pg_stat_all_tables stat
JOIN pg_catalog.pg_statio_all_tables statio ON stat.relid = statio.relid
JOIN pg_catalog.pg_class cl ON cl.oid=stat.relid
WHERE stat.relid = {class users}::oid;

SELECT oid, pubname FROM pg_catalog.pg_publication ORDER BY pubname;

SELECT oid, evtname FROM pg_catalog.pg_event_trigger;

SELECT fdw.oid, fdwname as name FROM pg_catalog.pg_foreign_data_wrapper fdw ORDER BY fdwname;

SELECT c.oid, c.collname AS name FROM pg_catalog.pg_collation c WHERE c.collnamespace = {namespace public}::oid ORDER BY c.collname;

SELECT d.oid, d.typname as name, pg_catalog.pg_get_userbyid(d.typowner) as owner FROM pg_catalog.pg_type d JOIN pg_catalog.pg_type b ON b.oid = d.typbasetype WHERE d.typnamespace = {namespace public}::oid ORDER BY d.typname;

SELECT rolname AS refname, refclassid, deptype FROM pg_catalog.pg_shdepend dep LEFT JOIN pg_catalog.pg_roles r ON refclassid=1260 AND refobjid=r.oid WHERE dep.objid={class users}::oid AND deptype <> 'o' ORDER BY 1;

SELECT * FROM public.users ORDER BY id ASC;

SELECT at.attname, at.attnum, ty.typname FROM pg_catalog.pg_attribute at LEFT JOIN pg_catalog.pg_type ty ON (ty.oid = at.atttypid) JOIN (SELECT conrelid, conkey[generate_subscripts(conkey,1)] AS conkey FROM pg_constraint WHERE contype = 'p' AND conrelid = {class members}::oid) c ON c.conrelid = at.attrelid AND c.conkey = at.attnum WHERE attrelid={class members}::oid ORDER BY at.attnum;

SELECT pg_catalog.quote_ident('Odd Names'), quote_literal('it''s'), quote_nullable(NULL);

SELECT current_setting('server_version_num')::int >= 150000, pg_is_in_recovery(), CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_is_wal_replay_paused() ELSE false END as isreplaypaused;

-- differs: plans have nodes of their own
EXPLAIN (FORMAT JSON, ANALYZE FALSE, VERBOSE FALSE, COSTS FALSE) SELECT 1;
