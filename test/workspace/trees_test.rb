# frozen_string_literal: true

require_relative "../test_helper"
require_relative "scratch_repository"

# Clones of revisions and of the working tree in the cache.
class WorkspaceTreesTest < Minitest::Test
  include ScratchRepository

  BENCH = "require_relative '../lib/shop'\nputs Shop::PRICE\n"

  def test_revisions_by_every_name
    first = commit("lib/shop.rb" => "module Shop; PRICE = 1; end\n", "bench/price.rb" => BENCH)
    git("tag", "-a", "v1", "-m", "one")
    git("branch", "topic")
    commit("lib/shop.rb" => "module Shop; PRICE = 2; end\n")
    git("branch", "--set-upstream-to=topic")
    subjects(*["HEAD", "HEAD~1", "v1", "topic", "@{upstream}", first[0, 8]].map { |rev| side(rev: rev, name: rev) },
             script: File.join(@repo, "bench/price.rb")) do |list|
      assert_equal %w[2 1 1 1 1 1], list.map { |each| run_subject(each).strip }
      assert_equal first, list[1].facts["revision"]
      assert_equal "change", list[1].facts["title"]
      assert_equal 1, list.map { |each| each.dir.size }.uniq.size
      assert_equal 1, list.map { |each| each.script.size }.uniq.size
      assert_equal list[1].dir, list[2].dir # one tree, one checkout
      refute(list.any? { |each| each.dir.start_with?(@repo) })
      assert_equal %w[.git/ bench lib].sort,
                   Dir.children(list[0].dir).map { |name| name == ".git" ? ".git/" : name }.sort
      assert_equal "bench/price.rb\nlib/shop.rb", git("ls-files", dir: list[1].dir)
      assert_equal "v1", git("describe", dir: list[1].dir)
    end
    assert_equal RUBY_DESCRIPTION.sub(" +YJIT", ""), subjects(side(rev: "v1")) { |list| list.first.facts["ruby"] }
  end

  def test_neither_the_tree_nor_its_repository_is_written
    commit(".gitignore" => "/key\n", "lib/shop.rb" => "module Shop; PRICE = 1; end\n", "bench/price.rb" => BENCH)
    commit("lib/shop.rb" => "module Shop; PRICE = 2; end\n")
    write("lib/shop.rb" => "module Shop; PRICE = 3; end\n", "new.rb" => "", "key" => "secret", "staged.rb" => "1")
    git("add", "staged.rb")
    FileUtils.touch(File.join(@repo, "bench/price.rb"), mtime: Time.now - 5) # what git would refresh its index for
    before = fingerprint(@repo)
    subjects(side(rev: "HEAD~1"), side(dirty: true), side(env: { "X" => "1" }), script: "#{@repo}/bench/price.rb",
             carry: ["key"]) do |list|
      assert_equal %w[1 3 3], list.map { |each| run_subject(each).strip }
      assert_equal "secret", File.read(File.join(list.first.dir, "key"))
    end
    assert_empty before.difference(fingerprint(@repo)) + fingerprint(@repo).difference(before)
  end

  def test_the_working_tree
    commit(".gitignore" => "*.log\n", "a" => "1", "gone" => "1", "run" => "#!/bin/sh\n", "lib/b" => "1")
    write("a" => "2", "gone" => nil, "new/file" => "3", "x.log" => "4")
    File.chmod(0o755, File.join(@repo, "run"))
    File.symlink("a", File.join(@repo, "link"))
    FileUtils.mkdir_p(File.join(@repo, "inner"))
    git("init", "--quiet", dir: File.join(@repo, "inner"))
    subject(side(dirty: true)) do |dirty|
      there = Dir.glob("**/*", File::FNM_DOTMATCH, base: dirty.dir).reject do |name|
        name.start_with?(".git/") || File.directory?(File.join(dirty.dir, name))
      end
      assert_equal [".gitignore", "a", "lib/b", "link", "new/file", "run"], there.sort
      assert_equal %w[2 a], [File.read(File.join(dirty.dir, "a")), File.readlink(File.join(dirty.dir, "link"))]
      assert File.executable?(File.join(dirty.dir, "run"))
      assert_equal "uncommitted", dirty.facts["changes"]
      assert_includes git("ls-files", dir: dirty.dir), "new/file"
      @first = dirty.dir
    end
    subject(side(dirty: true)) { |dirty| assert_equal @first, dirty.dir }
    write("new/file" => "5")
    subject(side(dirty: true)) { |dirty| refute_equal @first, dirty.dir }
  end

  def test_nothing_committed_yet
    write("a.rb" => "puts 5")
    subject(side(dirty: true), script: File.join(@repo, "a.rb")) { |dirty| assert_equal "5\n", run_subject(dirty) }
    assert_includes failure(Pitwall::UsageError, side(rev: "HEAD")), "no such revision"
  end

  def test_a_subfolder_a_detached_head_and_a_linked_working_tree
    commit("app/bench.rb" => "puts Dir.pwd, File.read('data')", "app/data" => "1")
    commit("app/data" => "2", "app/deep/x" => "")
    git("checkout", "--quiet", "--detach")
    subjects(side(rev: "HEAD"), side(rev: "HEAD~1"), dir: File.join(@repo, "app"),
             script: File.join(@repo, "app/bench.rb")) do |list|
      list.zip(%w[2 1]) { |each, data| assert_equal "#{each.dir}\n#{data}\n", run_subject(each) }
      assert(list.all? { |each| each.dir.end_with?("/app") })
    end
    git("worktree", "add", "--quiet", File.join(@root, "second"), "HEAD~1")
    write({ "app/data" => "9" }, dir: File.join(@root, "second"))
    subjects(side(rev: "HEAD"), side(dirty: true), dir: File.join(@root, "second/app")) do |list|
      assert_equal %w[1 9], list.map { |each| File.read(File.join(each.dir, "data")) }
    end
    # A working directory that the revision doesn't have.
    subject(side(rev: "HEAD~1"), dir: File.join(@repo, "app/deep")) { |one| assert_path_exists one.dir }
  end

  def test_a_shallow_clone
    commit("a" => "1")
    commit("a" => "2")
    git("clone", "--quiet", "--depth=1", "file://#{@repo}", File.join(@root, "shallow"), dir: @root)
    write({ "a" => "3" }, dir: File.join(@root, "shallow"))
    subjects(side(rev: "HEAD"), side(dirty: true), dir: File.join(@root, "shallow")) do |list|
      assert_equal %w[2 3], list.map { |each| File.read(File.join(each.dir, "a")) }
      git("log", dir: list.first.dir)
    end
    assert_includes failure(Pitwall::UsageError, side(rev: "HEAD~1"), dir: File.join(@root, "shallow")),
                    "git fetch --unshallow"
  end

  def test_submodules_come_from_the_users_own
    library = File.join(@root, "library")
    Dir.mkdir(library)
    git("init", "--quiet", "--initial-branch=main", dir: library)
    commit({ "price" => "1" }, dir: library)
    git("submodule", "--quiet", "add", library, "vendor/library")
    commit
    commit({ "price" => "2" }, dir: library)
    git("pull", "--quiet", "origin", "main", dir: File.join(@repo, "vendor/library"))
    commit
    prices = ->(list) { list.map { |each| File.read(File.join(each.dir, "vendor/library/price")) } }
    # The submodule's origin is removed, so that nothing can be fetched.
    File.rename(library, "#{library}-away")
    write("vendor/library/price" => "3")
    before = fingerprint(@repo)
    subjects(side(rev: "HEAD~1"), side(rev: "HEAD"), side(dirty: true)) do |list|
      assert_equal %w[1 2 3], prices.call(list)
      assert_includes git("ls-files", "--recurse-submodules", dir: list.first.dir), "vendor/library/price"
    end
    assert_empty before.difference(fingerprint(@repo)) + fingerprint(@repo).difference(before)
    # The submodule is no longer checked out, but is still in .git.
    git("submodule", "--quiet", "deinit", "--force", "--all")
    subjects(side(rev: "HEAD~1")) { |list| assert_equal %w[1], prices.call(list) }
    FileUtils.rm_rf(File.join(@repo, ".git/modules"))
    FileUtils.rm_rf(@cache)
    subjects(side(rev: "HEAD~1")) { |list| assert_empty Dir.children(File.join(list.first.dir, "vendor/library")) }
    # The submodule is configured but the commit isn't there: it is fetched from the configured URL.
    git("config", "submodule.vendor/library.url", "#{library}-away")
    subjects(side(rev: "HEAD~1")) { |list| assert_equal %w[1], prices.call(list) }
    git("config", "submodule.vendor/library.url", "#{library}-nowhere")
    FileUtils.rm_rf(@cache)
    assert_match(/git fetch of submodule vendor\/library failed: .*\(log: /,
                 failure(Pitwall::Workspace::BuildFailed, side(rev: "HEAD~1")))
  end

  def test_carried_files
    commit(".gitignore" => "/config/*\n/assets\n", "a" => "1", "sub/b" => "",
           ".pitwall.yml" => "carry:\n  - config/*.key\n")
    write("config/master.key" => "k", "config/other" => "no", "assets/css/x.css" => "x", "assets/keep" => "mine")
    File.symlink("../a", File.join(@repo, "assets/link"))
    File.symlink("/etc", File.join(@repo, "assets/out"))
    git("add", "--force", "assets/keep")
    git("commit", "--quiet", "-m", "keep")
    write("assets/keep" => "changed since")
    subject(side(rev: "HEAD"), carry: ["../assets"], dir: File.join(@repo, "sub")) do |one|
      top = File.dirname(one.dir)
      names = %w[config/master.key assets/css/x.css assets/keep]
      assert_equal %w[k x mine], names.map { |name| File.read(File.join(top, name)) }
      assert_equal ["../a", "/etc"], %w[link out].map { |name| File.readlink(File.join(top, "assets", name)) }
      refute_path_exists File.join(top, "config/other")
      @first = one.dir
    end
    write("config/master.key" => "K")
    subject(side(rev: "HEAD"), carry: ["../assets"], dir: File.join(@repo, "sub")) do |one|
      refute_equal @first, one.dir
    end
    assert_includes failure(Pitwall::UsageError, side(rev: "HEAD"), carry: ["nothing"]), "--carry nothing: no such file"
    write({ "beside" => "" }, dir: @root)
    ["../beside", "assets/out/hostname", "/etc/hostname", ".git"].each do |path|
      assert_includes failure(Pitwall::UsageError, side(rev: "HEAD"), carry: [path]), "is not a file inside"
    end
    write(".pitwall.yml" => "carry: [1")
    assert_includes failure(Pitwall::UsageError, side(rev: "HEAD")), ".pitwall.yml:"
  end

  def test_links_of_a_revision_lead_nowhere
    outside = File.join(@root, "outside")
    Dir.mkdir(outside)
    commit("a" => "")
    File.symlink(outside, File.join(@repo, "bench"))
    commit
    git("rm", "--quiet", "bench")
    commit("bench/x.rb" => "puts 1")
    assert_includes failure(Pitwall::Workspace::BuildFailed, side(rev: "HEAD~1"),
                            script: File.join(@repo, "bench/x.rb")), "leads out of"
    assert_empty Dir.children(outside)
  end

  def test_the_benchmark_is_the_users_own
    commit("lib/shop.rb" => "module Shop; PRICE = 1; end\n", "bench/price.rb" => "abort 'old'")
    commit("lib/shop.rb" => "module Shop; PRICE = 2; end\n")
    write("bench/price.rb" => BENCH, "bench/other.rb" => "puts File.read('bench/price.rb')")
    bench = File.join(@repo, "bench/price.rb")
    subjects(side(rev: "HEAD~1"), side(rev: "HEAD"), script: bench) do |list|
      assert_equal %W[1\n 2\n], list.map { |each| run_subject(each) }
      # Another process that measures another benchmark in the same tree gets a tree of its own.
      subject(side(rev: "HEAD"), script: File.join(@repo, "bench/other.rb")) do |other|
        refute_equal list.last.dir, other.dir
        assert_equal "abort 'old'\n", run_subject(other)
      end
    end
    # Afterwards the other benchmark is placed in the tree, and the revision's version of the first is restored.
    trees = entries("trees").size
    subject(side(rev: "HEAD"), script: File.join(@repo, "bench/other.rb")) do |other|
      assert_equal "abort 'old'\n", run_subject(other)
    end
    subject(side(rev: "HEAD")) do |one|
      assert_equal "bench/price.rb\nlib/shop.rb", Dir.glob("**/*.rb", base: one.dir).sort.join("\n")
    end
    assert_equal trees, entries("trees").size
    # A benchmark outside of the repository is used from its place.
    write({ "elsewhere.rb" => "puts 7" }, dir: @root)
    subject(side(rev: "HEAD"), script: File.join(@root, "elsewhere.rb")) do |one|
      assert_equal File.join(@root, "elsewhere.rb"), one.script
    end
  end

  def test_what_a_benchmark_changes_in_its_tree_is_undone
    commit("data" => "1", "bench.rb" => "p 1")
    subject(side(rev: "HEAD"), script: File.join(@repo, "bench.rb")) do |one|
      File.write(File.join(one.dir, "data"), "spoilt")
    end
    subject(side(rev: "HEAD"), script: File.join(@repo, "bench.rb")) do |one|
      assert_equal "1", File.read(File.join(one.dir, "data"))
    end
  end

  def test_patches
    commit("lib/shop.rb" => "module Shop; PRICE = 1; end\n", "bench/price.rb" => BENCH)
    write({ "two.diff" => "--- a/lib/shop.rb\n+++ b/lib/shop.rb\n@@ -1 +1 @@\n-module Shop; PRICE = 1; " \
                          "end\n+module Shop; PRICE = 22; end\n" \
                        "--- /dev/null\n+++ b/lib/new.rb\n@@ -0,0 +1 @@\n+1\n",
                        "three.rb" => "module Shop; PRICE = 3; end" }, dir: @root)
    bench = File.join(@repo, "bench/price.rb")
    subjects(side, side(patches: [File.join(@root, "two.diff")]),
             side(rev: "HEAD", patches: [File.join(@root, "two.diff")]), script: bench) do |list|
      assert_equal %W[1\n 22\n 22\n], list.map { |each| run_subject(each) }
      assert_includes git("ls-files", dir: list.last.dir), "lib/new.rb"
    end
    subjects(side, side(patches: [File.join(@root, "three.rb")]), script: bench) do |list|
      assert_equal [@repo, @repo], list.map(&:dir)
      assert_equal [[], [File.join(@root, "three.rb")]], list.map(&:requires)
      assert_equal bench, list.last.script
    end
    write("lib/shop.rb" => "changed\n")
    bad = side(name: "x", patches: [File.join(@root, "two.diff")])
    Pitwall::Workspace.open(dir: @repo, place: @cache, environment: clean_environment) do |workspace|
      error = assert_raises(Pitwall::Workspace::BuildFailed) { workspace.subjects([bad]) }
      assert_match(/\Ax \(\h+\): git apply two.diff failed: .*patch does not apply \(log: .*\)\z/, error.message)
      # The failed try has given up its lock, so the next one does not wait for it.
      assert_raises(Pitwall::Workspace::BuildFailed) { workspace.subjects([bad]) }
      # The failed tree has no path: paths in the reason stay as they are.
      assert_includes workspace.explain(error.message), "lib/shop.rb: patch does not apply"
    end
  end

  def test_odd_repositories
    commit("a" => "1")
    assert_includes failure(Pitwall::UsageError, side(rev: "mian")), "--rev mian: no such revision in #{@repo} " \
                                                                     "(did you mean main?)"
    assert_includes failure(Pitwall::UsageError, side(rev: "@{u}")), "has no upstream"
    assert_includes failure(Pitwall::UsageError, side(rev: "--all")), "no such revision"
    assert_includes failure(Pitwall::UsageError, side(rev: "main"), dir: @root), "#{@root}: not a git repository"
    assert_includes failure(Pitwall::UsageError, side(dirty: true), dir: File.join(@repo, ".git")),
                    "has no working tree"
    # With the variables that git sets for hooks.
    variables = clean_environment.merge("GIT_DIR" => "/nowhere", "GIT_INDEX_FILE" => "/nowhere/index")
    subject(side(rev: "HEAD"), environment: variables) do |one|
      assert_equal [true, nil], [one.env.key?("GIT_DIR"), one.env["GIT_DIR"]]
    end
    # File names with special characters.
    commit("wört \"x\"\n\t.rb" => "1", " b" => "2", "-c" => "3")
    write("-d ö" => "4")
    subject(side(dirty: true)) { |one| assert_equal "4", File.read(File.join(one.dir, "-d ö")) }
    git("init", "--quiet", "--object-format=sha256", File.join(@root, "new"), dir: @root)
    commit({ "a" => "sha256" }, dir: File.join(@root, "new"))
    subject(side(rev: "HEAD"), dir: File.join(@root, "new")) do |one|
      assert_equal "sha256", File.read(File.join(one.dir, "a"))
    end
  end
end
