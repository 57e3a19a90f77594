CREATE TABLE "User" (
    "id" serial PRIMARY KEY,
    "email" text NOT NULL UNIQUE,
    "tags" text[],
    "data" jsonb,
    "made" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE "Post" (
    "id" serial PRIMARY KEY,
    "title" text NOT NULL,
    "authorId" integer NOT NULL REFERENCES "User" ("id") ON DELETE RESTRICT ON UPDATE CASCADE
);
