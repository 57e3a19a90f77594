SET application_name = 'DBeaver 24.1.0 - Main <main>';

SET extra_float_digits = 3;

SET client_min_messages = warning;

-- hides session_user
SELECT current_schema(),session_user;

SHOW search_path;

SHOW standard_conforming_strings;

-- differs: the owner of the schema public is the only role
SELECT n.oid,n.*,d.description FROM pg_catalog.pg_namespace n
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=n.oid AND d.objsubid=0 AND d.classoid='pg_namespace'::regclass
WHERE nspname IN ('public','sales')
ORDER BY nspname;

-- hides oid, datdba, datname, datfrozenxid, datminmxid, datacl
-- differs: a column of PostgreSQL 16
SELECT db.oid,db.* FROM pg_catalog.pg_database db WHERE datname=current_database();

-- columns: PostgreSQL itself has other settings
select * from pg_catalog.pg_settings where name='standard_conforming_strings';

-- differs: PostgreSQL 16 has more words
select string_agg(word, ',') from pg_catalog.pg_get_keywords() where word <> ALL ('{a,abs,absolute,action,ada,add,admin,after,all,allocate,alter,aggregate}'::text[]) and word < 'b';

SELECT version() LIKE 'PostgreSQL 1%';

-- unordered
SELECT t.oid,t.*,c.relkind,format_type(nullif(t.typbasetype, 0), t.typtypmod) as base_type_name, d.description
FROM pg_catalog.pg_type t
LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid=t.typelem
LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid=t.typrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid=d.objoid
WHERE t.typname IS NOT NULL
AND (c.relkind IS NULL OR c.relkind = 'c') AND (et.typcategory IS NULL OR et.typcategory <> 'C') AND t.typname IN ('mood','_mood','int4','text','_text','numeric','bool','timestamptz');

-- with ["{namespace public}"]
-- hides relfilenode, relpages, reltuples, relfrozenxid, relminmxid, relallvisible, reltoastrelid, relacl, tablespace, relowner, relhasrules, relhastriggers, partition_expr, partition_key
-- unordered
SELECT c.oid,c.relname,c.relkind,c.relnatts,c.relchecks,c.relhasindex,c.relpersistence,c.relreplident,c.relispartition,d.description,pg_catalog.pg_get_expr(c.relpartbound, c.oid) as partition_expr,  pg_catalog.pg_get_partkeydef(c.oid) as partition_key
FROM pg_catalog.pg_class c
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_class'::regclass
WHERE c.relnamespace=$1 AND c.relkind not in ('i','I','c');

-- with ["{class users}"]
SELECT c.relname,a.attrelid,a.attname,a.atttypid,a.attlen,a.attnum,a.atttypmod,a.attbyval,a.attalign,a.attstorage,a.attnotnull,a.atthasdef,a.attidentity,a.attgenerated,a.attisdropped,a.attislocal,a.attcollation,a.attoptions,pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) as def_value,dsc.description,dep.objid
FROM pg_catalog.pg_attribute a
INNER JOIN pg_catalog.pg_class c ON (a.attrelid=c.oid)
LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid=ad.adrelid AND a.attnum = ad.adnum)
LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid)
LEFT OUTER JOIN pg_depend dep on dep.refobjid = a.attrelid AND dep.deptype = 'i' and dep.refobjsubid = a.attnum and dep.classid = dep.refclassid
WHERE NOT a.attisdropped AND a.attnum > 0 AND c.oid=$1 ORDER BY a.attnum;

-- with ["{class sales.orders}"]
-- unordered
SELECT c.oid,c.conname,c.contype,c.condeferrable,c.condeferred,c.convalidated,c.conrelid,c.conindid,c.confrelid,c.confupdtype,c.confdeltype,c.confmatchtype,c.conkey,c.confkey,c.conpfeqop,c.confdelsetcols,t.relname as tabrelname,rt.relnamespace as refnamespace,d.description, null as consrc_copy
FROM pg_catalog.pg_constraint c
INNER JOIN pg_catalog.pg_class t ON t.oid=c.conrelid
LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid=c.confrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_constraint'::regclass
WHERE c.conrelid=$1
ORDER BY c.oid;

-- with ["{class users}"]
-- unordered
-- differs: casts in expressions are in parentheses
SELECT i.*,i.indkey as keys,c.relname,c.relnamespace,c.relam,c.reltablespace,tc.relname as tabrelname,dsc.description,pg_catalog.pg_get_expr(i.indpred, i.indrelid) as pred_expr,pg_catalog.pg_get_expr(i.indexprs, i.indrelid, true) as expr,pg_catalog.pg_relation_size(i.indexrelid) > 0 as index_rel_size,pg_catalog.pg_stat_get_numscans(i.indexrelid) >= 0 as index_num_scans
FROM pg_catalog.pg_index i
INNER JOIN pg_catalog.pg_class c ON c.oid=i.indexrelid
INNER JOIN pg_catalog.pg_class tc ON tc.oid=i.indrelid
LEFT OUTER JOIN pg_catalog.pg_description dsc ON i.indexrelid=dsc.objoid
WHERE i.indrelid=$1 ORDER BY tabrelname, c.relname;

-- with ["{class grown_ups}"]
SELECT pg_catalog.pg_get_viewdef($1, true) IS NOT NULL as definition;

SELECT pg_catalog.pg_get_constraintdef(oid, true) FROM pg_catalog.pg_constraint WHERE conrelid = 'public.users'::regclass ORDER BY conname;

SELECT x.oid,x.* FROM pg_catalog.pg_event_trigger x;

SELECT DISTINCT dep.deptype, dep.classid, dep.objid, cl.relkind, attr.attname,pg_get_expr(ad.adbin, ad.adrelid) adefval,
    CASE WHEN cl.relkind IS NOT NULL THEN cl.relkind || COALESCE(dep.objsubid::text, '')
        WHEN tg.oid IS NOT NULL THEN 'T'::text
        WHEN ty.oid IS NOT NULL THEN 'y'::text
        WHEN ns.oid IS NOT NULL THEN 'n'::text
        WHEN pr.oid IS NOT NULL THEN 'p'::text
        WHEN la.oid IS NOT NULL THEN 'l'::text
        WHEN rw.oid IS NOT NULL THEN 'R'::text
        WHEN co.oid IS NOT NULL THEN 'C'::text || contype
        WHEN ad.oid IS NOT NULL THEN 'A'::text
        ELSE ''
    END AS type,
    COALESCE(coc.relname, clrw.relname) AS ownertable,
    CASE WHEN cl.relname IS NOT NULL OR att.attname IS NOT NULL THEN cl.relname || COALESCE('.' || att.attname, '')
    ELSE COALESCE(cl.relname, co.conname, pr.proname, tg.tgname, ty.typname, la.lanname, rw.rulename, ns.nspname)
    END AS refname,
    COALESCE(nsc.nspname, nso.nspname, nsp.nspname, nst.nspname, nsrw.nspname) AS nspname
FROM pg_depend dep
LEFT JOIN pg_class cl ON dep.objid=cl.oid
LEFT JOIN pg_attribute att ON dep.objid=att.attrelid AND dep.objsubid=att.attnum
LEFT JOIN pg_namespace nsc ON cl.relnamespace=nsc.oid
LEFT JOIN pg_proc pr ON dep.objid=pr.oid
LEFT JOIN pg_namespace nsp ON pr.pronamespace=nsp.oid
LEFT JOIN pg_trigger tg ON dep.objid=tg.oid
LEFT JOIN pg_type ty ON dep.objid=ty.oid
LEFT JOIN pg_namespace nst ON ty.typnamespace=nst.oid
LEFT JOIN pg_constraint co ON dep.objid=co.oid
LEFT JOIN pg_class coc ON co.conrelid=coc.oid
LEFT JOIN pg_namespace nso ON co.connamespace=nso.oid
LEFT JOIN pg_rewrite rw ON dep.objid=rw.oid
LEFT JOIN pg_class clrw ON clrw.oid=rw.ev_class
LEFT JOIN pg_namespace nsrw ON clrw.relnamespace=nsrw.oid
LEFT JOIN pg_language la ON dep.objid=la.oid
LEFT JOIN pg_namespace ns ON dep.objid=ns.oid
LEFT JOIN pg_attrdef ad ON ad.oid=dep.objid
LEFT JOIN pg_attribute attr ON attr.attrelid=ad.adrelid and attr.attnum=ad.adnum
WHERE dep.refobjid={class teams} AND classid IN (
   SELECT oid FROM pg_class WHERE relname IN ('pg_class', 'pg_constraint', 'pg_conversion', 'pg_language', 'pg_proc', 'pg_rewrite', 'pg_namespace', 'pg_trigger', 'pg_type', 'pg_attrdef', 'pg_event_trigger', 'pg_foreign_server'))
ORDER BY classid, cl.relkind, refname;

-- with ["{namespace public}"]
SELECT p.oid as poid,p.*,pg_catalog.pg_get_expr(p.proargdefaults, 0) as arg_defaults,d.description
FROM pg_catalog.pg_proc p
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=p.oid
WHERE p.pronamespace=$1 ORDER BY p.proname;

select c.oid,pg_catalog.pg_total_relation_size(c.oid) >= 0 as total_rel_size,pg_catalog.pg_relation_size(c.oid) >= 0 as rel_size
FROM pg_class c WHERE c.relnamespace={namespace public} and c.relkind = 'r' order by c.relname;

SELECT sequencename, data_type, start_value, min_value, max_value, increment_by, cycle, cache_size FROM pg_catalog.pg_sequences WHERE schemaname='public' ORDER BY 1;

SELECT e.enumlabel FROM pg_catalog.pg_enum e WHERE e.enumtypid={type mood} ORDER BY e.enumsortorder;

-- hides oid
SELECT e.oid,e.extname,e.extversion FROM pg_catalog.pg_extension e ORDER BY extname;

-- hides oid
SELECT pl.oid, pl.lanname FROM pg_catalog.pg_language pl ORDER BY pl.oid;

SELECT am.oid, am.amname, am.amtype FROM pg_catalog.pg_am am ORDER BY am.oid;

SELECT ts.oid,ts.spcname,pg_tablespace_location(ts.oid) loc FROM pg_catalog.pg_tablespace ts ORDER BY ts.oid;

SELECT f.*,fs.srvname FROM pg_catalog.pg_foreign_table f, pg_catalog.pg_foreign_server fs WHERE fs.oid=f.ftserver;

SELECT tr.oid,tr.* FROM pg_catalog.pg_trigger tr WHERE NOT tr.tgisinternal;

SELECT i.inhrelid, i.inhseqno FROM pg_catalog.pg_inherits i WHERE i.inhparent={class users} ORDER BY i.inhseqno;

-- hides grantor
-- unordered
SELECT (aclexplode(COALESCE(c.relacl, acldefault('r', c.relowner)))).privilege_type, c.relname FROM pg_class c WHERE c.relname = 'teams';

-- hides connection_id
SELECT pg_backend_pid() AS connection_id;

SET search_path = sales,public;

SELECT t.* FROM sales.lines t LIMIT 200;

SELECT x.*, x.ctid IS NOT NULL AS has_ctid FROM public.teams x ORDER BY id;

-- differs: there is no type xml, and plans have nodes of their own
EXPLAIN (FORMAT XML) SELECT 1;

BEGIN;

SAVEPOINT "SP_1";

UPDATE public.teams SET title='dev2' WHERE id = 2;

ROLLBACK TO SAVEPOINT "SP_1";

COMMIT;

SELECT a.name,a.setting FROM pg_settings a WHERE a.name IN ('search_path','extra_float_digits','client_min_messages','application_name') ORDER BY 1;

SELECT typname, typinput::regproc::text, typdelim FROM pg_type WHERE oid IN (16, 20, 25, 1700, 3802) ORDER BY oid;

SELECT p.rolname FROM pg_catalog.pg_roles p WHERE p.rolname = 'pg_monitor';

SELECT pg_catalog.pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database();

SELECT c.oid,c.collname,c.collencoding,c.collprovider,c.collisdeterministic FROM pg_catalog.pg_collation c WHERE collname IN ('C', 'POSIX', 'default') ORDER BY collname;
