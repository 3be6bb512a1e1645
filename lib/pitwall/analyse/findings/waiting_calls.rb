# frozen_string_literal: true

module Pitwall
  module Analyse
    module Findings
      # Methods that wait, by what they wait for.
      module WaitingCalls
        LOCKS = ["Thread::Mutex#lock", "Thread::Mutex#synchronize", "Mutex#lock", "Mutex#synchronize", "Monitor#enter",
                 "Monitor#mon_enter", "Monitor#synchronize", "Monitor#mon_synchronize", "MonitorMixin#mon_enter",
                 "MonitorMixin#mon_synchronize", "MonitorMixin#synchronize"].freeze
        CHILD = /\A(?:Process\.(?:wait|wait2|waitpid|waitpid2|detach)|Process::Status\.wait|Process::Waiter#.*|
                    Kernel[\#.](?:`|system)|IO\.popen|Open3\..*)\z/x.freeze
        SLEEP = /\A(?:Kernel[#.]sleep|Process\.sleep)\z/.freeze
        READING = /\A(?:(?:IO|BasicSocket)[\#.](?:\w*read\w*|gets|each_line|getc|getbyte|\w*write\w*|puts|print|flush|
                         fsync|wait\w*|select|\w*recv\w*|\w*send\w*|close)|
                      File\#(?:\w*read\w*|\w*write\w*)|
                      (?:Socket|TCPSocket|UNIXSocket)[\#.](?:open|new|initialize|tcp|\w*connect\w*|
                                                            \w*read\w*|\w*write\w*)|
                      Kernel[\#.](?:select|gets|readline)|Addrinfo\.getaddrinfo|OpenSSL::SSL::\w+\#\w+|
                      PG::Connection\#\w+|Mysql2::Client\#\w+|Trilogy\#\w+)\z/x.freeze
        OTHERS = /\A(?:Thread\#(?:join|value)|Thread::(?:Sized)?Queue\#(?:pop|push|shift|deq|<<)|Thread\.stop|
                     Thread::ConditionVariable\#wait|Thread::Mutex\#sleep)\z/x.freeze
        # A file lock may be held by other processes, so the line that holds it is unknown.
        FILE_LOCK = /\AFile\#flock\z/.freeze
        ANY = Regexp.union(CHILD, SLEEP, READING, FILE_LOCK, OTHERS).freeze
        private_constant :OTHERS

        # Whether a method takes a lock.
        #: (String) -> bool
        def self.lock?(name) = LOCKS.include?(name)

        # Whether a method may wait.
        #: (String) -> bool
        def self.any?(name) = lock?(name) || name.match?(ANY)

        # Whether a method releases a lock while it waits.
        #: (String) -> bool
        def self.releases?(name) = ["Thread::Mutex#sleep", "Thread::ConditionVariable#wait"].include?(name)

        # What a method waits for: :child, :sleep, :file_lock or :io; nil for locks, queues and other threads.
        #: (String) -> Symbol?
        def self.what(name)
          case name
          when CHILD then :child
          when SLEEP then :sleep
          when FILE_LOCK then :file_lock
          when READING then :io
          end
        end
      end
      private_constant :WaitingCalls
    end
  end
end
